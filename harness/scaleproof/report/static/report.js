"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  // Theme: the system's unless the reader chose; file:// pages may have no storage.
  const stored = (value) => {
    try { return value === undefined ? localStorage.getItem("theme") : localStorage.setItem("theme", value); } catch (_) { return null; }
  };
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  if (stored()) root.dataset.theme = stored();
  const theme = document.getElementById("theme");
  const label = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; stored(root.dataset.theme); label(); });
  label();

  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try { await navigator.clipboard.writeText(code.textContent); button.textContent = "Copied"; } catch (_) { getSelection().selectAllChildren(code); }
    });
  }

  // A link into a folded part opens it.
  const reveal = () => {
    if (!location.hash || location.hash.includes("=")) return;
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  addEventListener("beforeprint", () => document.querySelectorAll("main details").forEach((part) => { part.open = true; }));
  reveal();

  // The menu of suites closes with Escape, and with a click or the focus elsewhere.
  for (const menu of document.querySelectorAll("details.menu")) {
    const elsewhere = (event) => { if (!menu.contains(event.target)) menu.open = false; };
    addEventListener("click", elsewhere);
    addEventListener("focusin", elsewhere);
    menu.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { menu.open = false; menu.querySelector("summary").focus(); }
    });
  }

  // Tables: search, verdicts, tags, sort. The state stands in the hash as q=..&verdict=..&tags=axis=tag,..&sort=table:column:direction.
  const search = document.getElementById("search");
  const tables = [...document.querySelectorAll("table[data-sortable]")];
  if (!tables.length) return;
  const axes = [...document.querySelectorAll("select[data-axis]")];
  const chips = [...document.querySelectorAll("button[data-verdict]")];
  const shown = document.getElementById("shown");
  const first = new Map(tables.map((table) => [table, [...table.tBodies[0].rows]]));
  let state = new URLSearchParams();

  const read = () => { state = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : ""); };
  const write = () => {
    const text = state.toString();
    history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
  };
  const set = (key, value) => { if (value) state.set(key, value); else state.delete(key); write(); apply(); };

  const key = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.trim();
    return text !== "" && !isNaN(text) ? Number(text) : text.toLowerCase();
  };
  const compare = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return a < b ? -1 : a > b ? 1 : 0;
  };
  const sort = (table, column, direction) => {
    const rows = [...first.get(table)];
    if (column !== null) rows.sort((a, b) => {
      const [x, y] = [key(a, column), key(b, column)];
      return (x === "" || y === "" ? 1 : direction) * compare(x, y);
    });
    table.tBodies[0].append(...rows);
    [...table.tHead.rows[0].cells].forEach((cell, place) => {
      if (place === column) cell.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending"); else cell.removeAttribute("aria-sort");
    });
  };
  const apply = () => {
    const words = (state.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const verdicts = (state.get("verdict") || "").split(",").filter(Boolean);
    const tags = (state.get("tags") || "").split(",").filter(Boolean);
    const [sorted, column, direction] = (state.get("sort") || "").split(":");
    let visible = 0, total = 0;
    for (const table of tables) {
      if (table.id === sorted && table.tHead.rows[0].cells[column]) sort(table, Number(column), direction === "down" ? -1 : 1); else sort(table, null, 1);
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !(words.every((word) => text.includes(word)) && (!verdicts.length || row.dataset.verdict === undefined || verdicts.includes(row.dataset.verdict))
          && (row.dataset.tags === undefined || tags.every((tag) => row.dataset.tags.split(" ").includes(tag))));
        visible += !row.hidden; total += 1;
      }
    }
    for (const chip of chips) chip.setAttribute("aria-pressed", String(verdicts.includes(chip.dataset.verdict)));
    for (const axis of axes) axis.value = (tags.find((tag) => tag.startsWith(axis.dataset.axis + "=")) || "").slice(axis.dataset.axis.length + 1);
    if (search && search.value !== (state.get("q") || "")) search.value = state.get("q") || "";
    if (shown) shown.textContent = visible === total ? "" : `${visible} of ${total} rows shown`;
  };

  for (const table of tables) {
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...cell.childNodes);
      cell.append(button);
      button.addEventListener("click", () => {
        const now = cell.getAttribute("aria-sort");
        set("sort", now === "descending" ? "" : `${table.id}:${column}:${now === "ascending" ? "down" : "up"}`);
      });
    });
  }
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      const verdicts = new Set((state.get("verdict") || "").split(",").filter(Boolean));
      if (!verdicts.delete(chip.dataset.verdict)) verdicts.add(chip.dataset.verdict);
      set("verdict", [...verdicts].sort().join(","));
    });
  }
  for (const axis of axes) {
    axis.addEventListener("change", () => {
      const others = (state.get("tags") || "").split(",").filter((tag) => tag && !tag.startsWith(axis.dataset.axis + "="));
      set("tags", [...others, ...(axis.value ? [`${axis.dataset.axis}=${axis.value}`] : [])].sort().join(","));
    });
  }
  if (search) search.addEventListener("input", () => set("q", search.value));
  document.getElementById("clear")?.addEventListener("click", () => { state = new URLSearchParams(); write(); apply(); });
  addEventListener("hashchange", () => { if (location.hash.includes("=") || !location.hash) { read(); apply(); } });
  read();
  if (state.get("tags")) for (const axis of axes) axis.closest("details").open = true;
  apply();
})();
