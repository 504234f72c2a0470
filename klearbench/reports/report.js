"use strict";
// Everything that a model wrote goes to the page as text (textContent), never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const form = document.getElementById("filters");
  const list = document.getElementById("list");
  const more = document.getElementById("more");
  const found = document.getElementById("found");
  const PAGE = 50;
  let hits = [];
  let shown = 0;

  function element(tag, text, className) {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  }

  function options(select, names) {
    select.append(new Option("all", ""));
    names.forEach((name, i) => select.append(new Option(name, String(i))));
  }

  // A row: [run, suite, problem, index, status, tokens, ran into the limit, extracted, detail, completion, characters]
  function body(row) {
    const parts = [];
    if (row[8]) parts.push(element("p", row[8], "note"));
    const where = data.runs[row[0]] + "/samples.jsonl";
    const missing = "Left out of this file (" + row[10] + " characters); it is in " + where;
    parts.push(element("pre", row[9] === null ? missing : row[9]));
    return parts;
  }

  function line(row) {
    const item = element("details");
    const head = element("summary");
    const status = data.statuses[row[4]];
    head.append(element("b", status, status), element("span", row[2] + " #" + row[3]));
    if (data.runs.length > 1) head.append(element("span", data.runs[row[0]]));
    if (row[5] !== null) head.append(element("span", row[5] + " tokens" + (row[6] ? ", at the limit" : "")));
    if (row[7] !== null) head.append(element("span", "answer: " + row[7].slice(0, 80)));
    item.append(head);
    item.addEventListener("toggle", () => {
      if (item.open && item.childNodes.length === 1) item.append(...body(row));
    });
    return item;
  }

  function showMore() {
    const rows = hits.slice(shown, shown + PAGE);
    list.append(...rows.map(line));
    shown += rows.length;
    more.hidden = shown >= hits.length;
  }

  function search() {
    const value = (name) => form.elements[name].value;
    const wanted = [value("run"), value("suite"), value("status")].map((v) => (v === "" ? null : Number(v)));
    const problem = value("problem").trim();
    const text = value("text").toLowerCase();
    hits = data.rows.filter((row) =>
      (wanted[0] === null || row[0] === wanted[0]) &&
      (wanted[1] === null || row[1] === wanted[1]) &&
      (wanted[2] === null || row[4] === wanted[2]) &&
      (!problem || row[2] === problem) &&
      (!text || [row[7], row[8], row[9]].some((t) => t && t.toLowerCase().includes(text))));
    shown = 0;
    list.replaceChildren();
    found.textContent = hits.length + " of " + data.rows.length + " samples";
    showMore();
  }

  options(form.elements.run, data.runs);
  options(form.elements.suite, data.suites);
  options(form.elements.status, data.statuses);
  let timer;
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 150);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", showMore);
  document.addEventListener("click", (event) => {
    const cell = event.target.closest(".heat button");
    if (!cell) return;
    form.elements.run.value = cell.dataset.run;
    form.elements.suite.value = cell.dataset.suite;
    form.elements.status.value = "";
    form.elements.text.value = "";
    form.elements.problem.value = cell.dataset.problem;
    search();
    document.getElementById("viewer").scrollIntoView();
  });
  search();
})();
