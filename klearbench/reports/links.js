"use strict";
// What an address names, `#suite=S&problem=P&run=R&sample=7`, as links.py writes it. A place says where run, suite and
// problem stand in the data's lists, -1: nowhere; what is left out is any.
const Links = (() => {
  const NAMES = ["run", "suite", "problem"];

  // A name as the static page, a field and an address can hold it: no lone surrogate, NUL or line break.
  const plain = (name) => name.replace(/[\0\ud800-\udfff]/gu, "\ufffd").replace(/[\r\n]/g, "").trim();

  function find(names, name) {
    const place = names.indexOf(name);
    return place >= 0 ? place : names.findIndex((other) => plain(other) === plain(name));
  }

  // The link in the address, or null. A plus is a plus, and what is not encoded right is taken as it stands.
  function read() {
    const link = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B"));
    return NAMES.some((name) => link.has(name)) ? link : null;
  }

  function place(link, data) {
    const found = {};
    if (link.has("run")) found.run = find(data.runs, link.get("run"));
    if (link.has("suite")) found.suite = find(data.suites, link.get("suite"));
    if (link.has("problem")) {
      const places = data.problems.map((ids) => find(ids, link.get("problem")));
      found.suite ??= places.findIndex((inside) => inside >= 0);
      found.problem = places[found.suite] ?? -1;
    }
    return found;
  }

  function text({ run, suite, problem }, data, sample) {
    const link = new URLSearchParams({ suite: data.suites[suite], problem: data.problems[suite][problem] });
    if (run !== undefined && data.runs.length > 1) link.set("run", data.runs[run]);
    if (sample !== undefined) link.set("sample", sample);
    return "#" + String(link).replaceAll("+", "%20");
  }

  // Put a fragment, or none, into the address. Some browsers refuse that when it is done too often: it stays as it is.
  function write(fragment) {
    try {
      history.replaceState(null, "", location.href.split("#")[0] + fragment);
    } catch { /* nothing is lost but a link */ }
  }

  // Mark the cells of a problem, and only those.
  function mark({ run, suite, problem }, data) {
    for (const cell of document.querySelectorAll("[aria-current]")) cell.removeAttribute("aria-current");
    if (problem === undefined) return;
    const id = plain(data.problems[suite][problem]);
    for (const cell of document.querySelectorAll(`button[data-suite="${suite}"]`)) {
      const ours = run === undefined || cell.dataset.run === "" || Number(cell.dataset.run) === run;
      if (ours && plain(cell.dataset.problem) === id) cell.setAttribute("aria-current", "true");
    }
  }

  return { NAMES, plain, find, read, place, text, write, mark };
})();
