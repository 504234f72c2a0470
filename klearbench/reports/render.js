"use strict";
// What a model wrote as nodes of the page: paragraphs, headings, bold, code and mathematics; the rest as it stands.
// Text reaches the page as text nodes alone. Temml and highlight.js are called for trees, never for markup, and what
// they can't read is shown as it was written. Every scan is linear in the length of the text.
const Render = (() => {
  const MOST_MATH = 5000, MOST_CODE = 50000, MOST_BOX = 500, MOST_MARKS = 2000, MOST_FORMULAS = 4000, SLICE_MS = 12;
  const FENCE = /^[ \t]*(`{3,}|~{3,})[ \t]{0,8}([\w+#.-]{0,20})[^`\n]*$/gm;
  const TOKEN = /\\[\\$[(]|\$\$?|`+|\*\*|\\boxed\{|\\begin\{([a-z]+\*?)\}|\n[ \t]*\n\s*/g;
  const CLOSE = { "\\[": "\\]", "\\(": "\\)", "$$": "$$" };

  function element(tag, text, className) {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  }

  function math(tex, display, raw) {
    const node = element("span", undefined, display ? "display" : "inline");
    try {
      if (tex.length > MOST_MATH) throw new Error("too long to be rendered");
      temml.render(tex, node, { displayMode: display, throwOnError: true, maxExpand: 500, maxSize: [20, 20] });
    } catch (error) {
      node.textContent = raw;
      node.className = "badmath";
      node.title = String(error.message).slice(0, 200);
    }
    return node;
  }

  function tree(children, into) {
    for (const child of children) {
      if (typeof child === "string") into.append(child);
      else {
        const span = element("span", undefined, child.scope ? "hl-" + child.scope.split(".")[0] : "");
        into.append(tree(child.children, span));
      }
    }
    return into;
  }

  function code(text, language) {
    const node = element("code");
    const box = element("pre");
    box.append(node);
    if (text.length <= MOST_CODE && hljs.getLanguage(language)) {
      tree(hljs.highlight(text, { language, ignoreIllegals: true })._emitter.rootNode.children, node);
    } else node.textContent = text;
    return box;
  }

  // The next place of a needle from `from` on, remembered: asked for growing places it reads a text once a needle.
  function finder(text) {
    const known = new Map();
    const find = (needle, from) => {
      let place = known.get(needle);
      if (place === undefined || (place >= 0 && place < from)) {
        place = text.indexOf(needle, from);
        known.set(needle, place);
      }
      return place;
    };
    find.formulas = 0;
    return find;
  }

  function braceEnd(text, from) {
    let depth = 1;
    for (let i = from; i < Math.min(text.length, from + MOST_BOX); i++) {
      if (text[i] === "\\") i++;
      else if (text[i] === "{") depth++;
      else if (text[i] === "}" && --depth === 0) return i;
    }
    return -1;
  }

  // A dollar opens mathematics as in pandoc: no space after it, none before the one that closes, no digit after that.
  function dollarEnd(text, start, find) {
    if (/^\s?$/.test(text.charAt(start))) return -1;
    let end = find("$", start);
    while (end > 0 && text[end - 1] === "\\") end = text.indexOf("$", end + 1);
    if (end <= start || /\s/.test(text[end - 1]) || /\d/.test(text.charAt(end + 1))) return -1;
    return text.slice(start, end).includes("\n\n") ? -1 : end;
  }

  // One token -> [node, where it ends], or null where it is plain text.
  function special(text, match, find) {
    const [token, environment] = match;
    const formula = token !== "**" && token[0] !== "`";
    if (formula && find.formulas++ >= MOST_FORMULAS) return null;
    const start = match.index + token.length;
    const whole = (end) => text.slice(match.index, end);
    if (CLOSE[token]) {
      const end = find(CLOSE[token], start);
      if (end < 0) return null;
      return [math(text.slice(start, end), token !== "\\(", whole(end + 2)), end + 2];
    }
    if (token === "$") {
      const end = dollarEnd(text, start, find);
      return end < 0 ? null : [math(text.slice(start, end), false, whole(end + 1)), end + 1];
    }
    if (token === "\\boxed{") {
      const end = braceEnd(text, start);
      return end < 0 ? null : [math(whole(end + 1), false, whole(end + 1)), end + 1];
    }
    if (environment) {
      const close = "\\end{" + environment + "}";
      const end = find(close, start);
      return end < 0 ? null : [math(whole(end + close.length), true, whole(end + close.length)), end + close.length];
    }
    const end = find(token, start);
    if (formula || end < 0 || text.slice(start, end).includes("\n\n")) return null;
    return [element(token === "**" ? "b" : "code", text.slice(start, end)), end + token.length];
  }

  // Prose -> paragraphs, one at a time.
  function* prose(text) {
    const find = finder(text);
    const token = new RegExp(TOKEN);
    let paragraph = element("p"), done = 0, match;
    const put = (end) => { if (end > done) paragraph.append(text.slice(done, end)); };
    while ((match = token.exec(text))) {
      if (match[0][0] === "\n") {
        put(match.index);
        yield paragraph;
        paragraph = element("p");
        done = token.lastIndex;
      } else if (!["\\\\", "\\$"].includes(match[0])) {
        const found = special(text, match, find);
        if (!found) continue;
        put(match.index);
        paragraph.append(found[0]);
        done = token.lastIndex = found[1];
      }
    }
    put(text.length);
    yield paragraph;
  }

  // A text -> its blocks, one at a time: code between fences, and paragraphs.
  function* blocks(text, language) {
    const fence = new RegExp(FENCE);
    let done = 0, match;
    while ((match = fence.exec(text))) {
      const [line, marks, named] = match;
      const start = Math.min(text.length, match.index + line.length + 1);
      const close = new RegExp("^[ \\t]*" + marks[0] + "{" + marks.length + ",}[ \\t]*$", "gm");
      close.lastIndex = start;
      const end = close.exec(text);
      yield* prose(text.slice(done, match.index).trim());
      yield code(text.slice(start, end ? end.index : text.length).replace(/\n$/, ""), (named || language).toLowerCase());
      done = end ? Math.min(text.length, close.lastIndex + 1) : text.length;
      fence.lastIndex = done;
      if (!end) break;
    }
    yield* prose(text.slice(done).trim());
  }

  const pause = () => new Promise((resolve) => setTimeout(resolve));

  // Fill a node block by block, letting the page breathe in between.
  async function fill(node, text, language) {
    let start = performance.now();
    for (const block of blocks(text, language)) {
      const heading = block.tagName === "P" && block.firstChild && /^#{1,6} +/.exec(block.firstChild.nodeValue || "");
      if (heading) {
        block.firstChild.nodeValue = block.firstChild.nodeValue.slice(heading[0].length);
        block.className = "h";
      }
      if (block.childNodes.length) node.append(block);
      if (performance.now() - start > SLICE_MS) {
        await pause();
        start = performance.now();
      }
    }
  }

  // A completion -> [thinking (null: none), whether it was closed, the rest]: as the judge does it, the last closing
  // tag ends the thinking.
  function parted(text) {
    const opening = /^\s*<(think|thinking|thought|reasoning)>/i.exec(text);
    const closing = [...text.matchAll(/<\/(think|thinking|thought|reasoning)>/gi)].pop();
    if (!opening && !closing) return [null, true, text];
    const start = opening ? opening[0].length : 0;
    if (!closing) return [text.slice(start), false, ""];
    return [text.slice(start, closing.index), true, text.slice(closing.index + closing[0].length)];
  }

  // Show where a text is found below a node, without touching the nodes.
  function mark(node, wanted) {
    if (!wanted || !CSS.highlights) return;
    const elsewhere = (range) => range.startContainer.isConnected && !node.contains(range.startContainer);
    const ranges = [...(CSS.highlights.get("found") || [])].filter(elsewhere);
    const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    for (let text = walk.nextNode(); text && ranges.length < MOST_MARKS; text = walk.nextNode()) {
      const value = text.nodeValue.toLowerCase();
      let at = value.indexOf(wanted);
      while (at >= 0 && at + wanted.length <= text.length && ranges.length < MOST_MARKS) {
        const range = new StaticRange(
          { startContainer: text, startOffset: at, endContainer: text, endOffset: at + wanted.length });
        ranges.push(range);
        at = value.indexOf(wanted, at + wanted.length);
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  }

  return { element, math, code, fill, parted, mark };
})();
