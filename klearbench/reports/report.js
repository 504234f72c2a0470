"use strict";
// The viewer: rows of numbers are read once, texts piece by piece when they are wanted. See data.py for what is where.
(() => {
  const { element } = Render;
  const form = document.getElementById("filters");
  const list = document.getElementById("list");
  const more = document.getElementById("more");
  const found = document.getElementById("found");
  const progress = document.getElementById("progress");
  const viewer = document.getElementById("viewer");
  const lost = document.getElementById("lost");
  const PAGE = 50, KEPT = 24, CLIP = 4000, CLIP_NAME = 80;
  const pieces = new Map();
  let data, columns, hits = [], shown = 0, searches = 0, goal = null, followed = false, libraries;

  async function inflate(id) {
    const packed = atob(document.getElementById(id).textContent);
    const bytes = new Uint8Array(packed.length);
    for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).text();
  }

  // A piece of data; those used last are kept.
  function piece(id) {
    const got = pieces.get(id) || inflate(id).then(JSON.parse);
    pieces.delete(id);
    pieces.set(id, got);
    if (pieces.size > KEPT) pieces.delete(pieces.keys().next().value);
    return got;
  }

  // Temml and highlight.js are scripts whose hashes the page's policy names; they start when they are first needed.
  function start() {
    libraries ||= Promise.all(["temml", "highlight"].map(async (id) => {
      const script = element("script", await inflate(id));
      document.head.append(script);
    }));
    return libraries;
  }

  const texts = async (row) => (await piece("texts" + columns.piece[row]))[columns.place[row]];

  async function promptOf(row) {
    const number = data.prompts[columns.run[row]][columns.suite[row]][columns.problem[row]];
    if (number < 0) return null;
    return (await piece("prompts" + Math.floor(number / data.a_piece)))[number % data.a_piece];
  }

  const problemOf = (row) => data.problems[columns.suite[row]][columns.problem[row]];
  const count = (number) => number.toLocaleString("en");

  // A part that is folded, and filled when it is first opened.
  function folded(title, fill, open = false) {
    const node = element("details");
    node.append(element("summary", title));
    let filled = false;
    const show = () => {
      if (!node.open || filled) return;
      filled = true;
      fill(node);
    };
    node.addEventListener("toggle", show);
    node.open = open;
    return node;
  }

  // A text that can be shown as it was written or rendered; the thinking is folded, unless there is nothing else.
  function completion(text, language, wanted) {
    const box = element("div");
    const tools = element("div", undefined, "tools");
    const button = element("button", "Show as written", "plain");
    button.type = "button";
    tools.append(button);
    const content = element("div", undefined, "text");
    const [thinking, closed, rest] = Render.parted(text);
    const put = async (node, part) => {
      await Render.fill(node, part, language);
      Render.mark(node, wanted);
    };
    async function rendered() {
      const parts = [];
      if (thinking !== null) {
        const title = `Thinking, ${count(thinking.length)} characters${closed ? "" : ", not finished"}`;
        const open = !rest.trim() || (wanted && thinking.toLowerCase().includes(wanted));
        parts.push(folded(title, (node) => {
          const inside = element("div", undefined, "thinking");
          node.append(inside);
          put(inside, thinking);
        }, Boolean(open)));
      }
      const answer = element("div");
      content.replaceChildren(...parts, answer);
      await put(answer, rest);
    }
    button.addEventListener("click", () => {
      const raw = button.textContent === "Show as written";
      button.textContent = raw ? "Show rendered" : "Show as written";
      if (!raw) return rendered();
      content.replaceChildren(element("pre", text));
      Render.mark(content, wanted);
    });
    box.append(tools, content);
    rendered();
    return box;
  }

  function defined(pairs) {
    const node = element("dl");
    for (const [name, value] of pairs) {
      if (value === undefined || value === null || value === "") continue;
      const inside = element("dd");
      inside.append(value);
      node.append(element("dt", name), inside);
    }
    return node;
  }

  // What a judge found in a text may be as long as the text.
  const clip = (text) => (text.length <= CLIP ? text : `${text.slice(0, CLIP)} ... (${count(text.length)} characters)`);
  const pre = (text) => (text === undefined || text === null ? text : element("pre", text));

  function verdict(row, item) {
    const box = element("div", undefined, "verdict");
    const code = item.total !== undefined;
    const answer = item.extracted !== undefined && item.extracted !== null && !code;
    const test = item.test;
    box.append(defined([
      ["Status", data.ends[columns.end[row]].replace("_", " ") + (columns.limit[row] ? ", at the token limit" : "")],
      ["Answer", answer ? Render.math(item.extracted, false, clip(item.extracted)) : ""],
      ["As written", answer ? element("code", clip(item.extracted)) : ""],
      ["Tests", code && item.passed !== null ? `${item.passed} of ${item.total} passed` : ""],
      ["Used", code && item.cpu_s != null ? `${item.cpu_s.toFixed(2)} s of CPU time, ${Math.round(item.peak_mb)} MiB` : ""],
      ["First failing", test ? `test ${test.test} of ${test.total}` + (test.where ? `, ${test.where}` : "") : ""],
      ["Input", test && pre(test.input)],
      ["Expected", test && pre(test.expected)],
      ["Got", test && pre(test.got)],
      ["Why", test && test.what],
      ["Detail", (test && test.expected) || !item.detail ? "" : clip(item.detail)],
    ]));
    if (code && item.extracted) {
      box.append(folded("The program that was judged", (node) => node.append(Render.code(item.extracted, "python"))));
    }
    return box;
  }

  async function prompt(row) {
    const asked = await promptOf(row);
    if (!asked) return [element("p", "The run folder does not hold what was asked.", "note"), "math"];
    const node = folded("What was asked", (inside) => {
      for (const [role, text] of asked.messages) {
        const content = element("div", undefined, "text");
        inside.append(element("h4", role), content);
        Render.fill(content, text, asked.kind === "code" ? "python" : "");
      }
      inside.append(defined(Object.entries(asked.facts).map(([name, value]) => [name, value && String(value)])));
    });
    return [node, asked.kind];
  }

  async function body(row, wanted) {
    const [item, [asked, kind]] = await Promise.all([texts(row), prompt(row), start()]);
    const parts = [asked, verdict(row, item)];
    if (item.completion === null) {
      const link = element("a", item.file);
      Object.assign(link, { href: item.file, target: "_blank", rel: "noopener" });
      const note = element("p", `The completion has ${count(columns.chars[row])} characters and is a file of its own: `);
      note.append(link);
      parts.push(note);
    } else parts.push(completion(item.completion, kind === "code" ? "python" : "", wanted));
    const node = element("div", undefined, "body");
    node.append(...parts);
    return node;
  }

  function line(row, wanted) {
    const item = element("details");
    const head = element("summary");
    const end = data.ends[columns.end[row]];
    head.append(element("b", end.replace("_", " "), end), element("span", `${problemOf(row)} #${columns.index[row]}`));
    if (data.suites.length > 1) head.append(element("span", data.suites[columns.suite[row]]));
    if (data.runs.length > 1) head.append(element("span", data.runs[columns.run[row]]));
    head.append(element("span", count(columns.tokens[row]) + " tokens" + (columns.limit[row] ? ", at the limit" : "")));
    if (columns.shown[row]) head.append(element("span", columns.shown[row]));
    item.append(head);
    head.addEventListener("click", () => item.open || point(row));
    item.addEventListener("toggle", async () => {
      if (!item.open || item.childNodes.length > 1) return;
      const place = element("p", "Loading ...", "note");
      item.append(place);
      const failed = (error) => element("p", `It can't be shown: ${error}`, "note warn");
      place.replaceWith(await body(row, wanted).catch(failed));
      Render.mark(item, wanted);
      if (goal === row) item.scrollIntoView();
    });
    return item;
  }

  function showMore() {
    const wanted = form.elements.text.value.toLowerCase();
    list.append(...hits.slice(shown, shown + PAGE).map((row) => line(row, wanted)));
    shown = Math.min(hits.length, shown + PAGE);
    more.hidden = shown >= hits.length;
    more.textContent = `Show ${Math.min(PAGE, hits.length - shown)} more of ${count(hits.length - shown)}`;
  }

  function byNumbers() {
    const value = (name) => form.elements[name].value;
    const number = (name, none) => (value(name) === "" ? none : Number(value(name)));
    const [run, suite, end] = ["run", "suite", "end"].map((name) => number(name, null));
    const [least, most] = [number("least", 0), number("most", Infinity)];
    const problem = value("problem").trim();
    const wanted = data.problems.map((ids) => ids.map((id) =>
      !problem || (problem[0] === "=" ? Links.plain(id) === Links.plain(problem.slice(1)) : id.includes(problem))));
    const rows = columns.run.map((_, row) => row).filter((row) =>
      (run === null || columns.run[row] === run) &&
      (suite === null || columns.suite[row] === suite) &&
      (end === null || columns.end[row] === end) &&
      columns.tokens[row] >= least && columns.tokens[row] <= most &&
      wanted[columns.suite[row]][columns.problem[row]]);
    const order = Number(value("order"));
    return order ? rows.sort((a, b) => order * (columns.tokens[a] - columns.tokens[b])) : rows;
  }

  // The rows whose texts hold `wanted`. Pieces are opened one after another; a later search ends this one (null).
  async function byText(rows, wanted, search) {
    const byPiece = new Map();
    for (const row of rows) byPiece.set(columns.piece[row], [...(byPiece.get(columns.piece[row]) || []), row]);
    const holds = new Set();
    let done = 0;
    for (const [number, inside] of byPiece) {
      const items = await piece("texts" + number);
      if (search !== searches) return null;
      for (const row of inside) {
        const item = items[columns.place[row]];
        if ([item.completion, item.extracted, item.detail].some((text) => text && text.toLowerCase().includes(wanted))) {
          holds.add(row);
        }
      }
      progress.value = ++done / byPiece.size;
      found.textContent = `${count(holds.size)} found, ${Math.round(100 * progress.value)} % searched`;
      await new Promise((resolve) => setTimeout(resolve));
    }
    return rows.filter((row) => holds.has(row));
  }

  async function search() {
    const mine = ++searches;
    goal = null;
    const wanted = form.elements.text.value.toLowerCase();
    let rows = byNumbers();
    progress.hidden = !wanted;
    list.replaceChildren();
    more.hidden = true;
    if (wanted) rows = await byText(rows, wanted, mine);
    if (mine !== searches) return;
    progress.hidden = true;
    hits = rows;
    shown = 0;
    found.textContent = `${count(hits.length)} of ${count(columns.run.length)} samples`;
    showMore();
  }

  function options(select, names, column) {
    const counts = names.map(() => 0);
    for (const value of column) counts[value]++;
    select.append(new Option("all", ""));
    names.forEach((name, i) => counts[i] && select.append(new Option(`${name} (${count(counts[i])})`, i)));
  }

  const quoted = (name) => `"${name.length > CLIP_NAME ? name.slice(0, CLIP_NAME) + " ..." : name}"`;

  // What a link asked for in vain, after the node where the reader looks.
  function tell(text, node) {
    lost.hidden = !text;
    lost.textContent = text;
    if (text) node.after(lost);
  }

  // Show the samples of a place, with no other filter.
  async function show(place) {
    followed = true;
    tell("");
    for (const field of form.elements) if (field.name) field.value = "";
    for (const name of ["run", "suite"]) if (place[name] !== undefined) form.elements[name].value = place[name];
    if (place.problem !== undefined) form.elements.problem.value = "=" + data.problems[place.suite][place.problem];
    Links.mark(place, data);
    await search();
  }

  async function showProblem(cell) {
    const suite = Number(cell.dataset.suite);
    const place = { suite, problem: Links.find(data.problems[suite], cell.dataset.problem) };
    if (cell.dataset.run) place.run = Number(cell.dataset.run);
    Links.write(Links.text(place, data));
    await show(place);
    viewer.scrollIntoView();
  }

  // A sample is opened by hand: the address is its link.
  function point(row) {
    const place = Object.fromEntries(Links.NAMES.map((name) => [name, columns[name][row]]));
    tell("");
    Links.mark(place, data);
    Links.write(Links.text(place, data, columns.index[row]));
  }

  // A filter is changed by hand: what the address named is not what is shown any more.
  function forget() {
    followed = false;
    tell("");
    Links.mark({}, data);
    if (Links.read()) Links.write("");
  }

  function openSample(place, sample) {
    const at = hits.findIndex((row) => (sample === null || String(columns.index[row]) === sample)
      && Links.NAMES.every((name) => place[name] === undefined || columns[name][row] === place[name]));
    if (at < 0) {
      const problem = `problem ${quoted(data.problems[place.suite][place.problem])}`;
      tell(`No sample ${sample === null ? "" : quoted(sample) + " "}of ${problem} in this report.`, found);
      return;
    }
    while (shown <= at) showMore();
    goal = hits[at];
    list.children[at].open = true;
    list.children[at].scrollIntoView();
  }

  // Show what the address names. Of a name that this report does not have it is told, and all samples are shown.
  async function follow() {
    const link = Links.read();
    if (!link) {
      if (followed && !location.hash) await show({});
      return;
    }
    const place = Links.place(link, data);
    const unknown = Links.NAMES.find((name) => link.has(name) && place[name] < 0);
    await show(unknown ? {} : place);
    if (unknown) {
      tell(`No ${unknown} ${quoted(link.get(unknown))} in this report.`, document.querySelector("nav"));
      lost.scrollIntoView({ block: "nearest" });
      return;
    }
    viewer.scrollIntoView();
    if (place.problem !== undefined) openSample(place, link.get("sample"));
  }

  async function open() {
    data = JSON.parse(await inflate("rows"));
    columns = data.columns;
    options(form.elements.run, data.runs, columns.run);
    options(form.elements.suite, data.suites, columns.suite);
    options(form.elements.end, data.ends.map((end) => end.replace("_", " ")), columns.end);
    let timer;
    form.addEventListener("input", () => {
      forget();
      clearTimeout(timer);
      timer = setTimeout(search, 200);
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => {
      forget();
      setTimeout(search);
    });
    more.addEventListener("click", showMore);
    document.addEventListener("click", (event) => {
      const cell = event.target.closest("button[data-problem]");
      if (cell) showProblem(cell);
    });
    addEventListener("hashchange", follow);
    await follow();
    if (!searches) await search();
  }

  open().catch((error) => { found.textContent = `The samples can't be shown: ${error}`; });
})();
