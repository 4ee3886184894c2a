// The explorer of a run. Reads the data of the page, and shows: which matches lie in the bars that are chosen, the
// table of matches, and of the one that is picked its events on a line, with those that are missing.
// Everything that users wrote goes into the page as text, never as HTML.
"use strict";

document.documentElement.classList.add("scripted");

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const [QUERY, ERRORS, START, END, KEY, MISSING, EVENTS, HIDDEN, VALUES] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
  const PAGE = 100; // rows of the table that are made at once
  const many = data.queries.length > 1;
  const state = { tab: data.matches.length ? "matches" : "near", bins: null, plot: null, errors: "", query: "", text: "",
    sort: null, rows: PAGE, match: null, near: null };

  // --- small helpers --------------------------------------------------------------------------------------

  /** An element: attributes (on... are listeners), then children, texts among them. */
  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    fill(node, attributes, children);
    return node;
  }

  function draw(tag, attributes = {}, ...children) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    fill(node, attributes, children);
    return node;
  }

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
  }

  const plural = (number, thing, things) => `${count(number)} ${number === 1 ? thing : things || thing + "s"}`;
  const count = (number) => String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  const byId = (id) => document.getElementById(id);
  const colour = (errors) => Math.min(errors, 4);

  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const two = (number) => String(number).padStart(2, "0");

  function day(tick) {
    const date = new Date(Math.floor(tick / 1000));
    return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
  }

  /** The time of the day, with at most so many digits behind the second. */
  function clock(tick, digits = 6) {
    const date = new Date(Math.floor(tick / 1000));
    const micros = String(((tick % 1e6) + 1e6) % 1e6).padStart(6, "0").slice(0, digits).replace(/0+$/, "");
    const seconds = date.getUTCSeconds() || micros || tick % 1e6 ? ":" + two(date.getUTCSeconds()) : "";
    return `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}${seconds}${micros ? "." + micros : ""}`;
  }

  /** How many digits behind the second tell events apart that lie so far from one another. */
  const digitsOf = (span) => (span >= 2e6 ? 0 : span >= 2e3 ? 3 : 6);

  const years = new Set(data.time ? data.edges.slice(0, -1).concat(data.edges.slice(1).map((tick) => tick - 1))
    .map((tick) => new Date(tick / 1000).getUTCFullYear()) : []);

  /** A tick in a list: without the year where there is one only. */
  function brief(tick) {
    const text = moment(tick, null, 0);
    return years.size === 1 ? text.replace(/ \d+, /, ", ") : text;
  }

  /** A tick for people; of the day of another one only the time. */
  function moment(tick, other = null, digits = 6) {
    if (!data.time || Math.abs(tick) > 8.6e18) return count(tick);
    return other !== null && day(tick) === day(other) ? clock(tick, digits) : `${day(tick)}, ${clock(tick, digits)}`;
  }

  function lasting(ticks) {
    if (!data.time) return count(ticks);
    const units = [["d", 864e8], ["h", 36e8], ["min", 6e7], ["s", 1e6], ["ms", 1e3], ["us", 1]];
    const at = units.findIndex(([, size]) => ticks >= size);
    if (at < 0) return "0 s";
    const [name, size] = units[at];
    const first = Math.floor(ticks / size);
    if (at > 2) return `${+(ticks / size).toPrecision(4)} ${name}`;
    const [below, part] = units[at + 1];
    const second = Math.floor((ticks - first * size) / part);
    return second ? `${first} ${name} ${second} ${below}` : `${first} ${name}`;
  }

  const eventOf = (row) => data.events[row] || null;
  const keyText = (key) => key.map((value) => (value === null ? "-" : value)).join(", ");
  const keyWords = (key) => data.keys.map((name, at) => (key[at] === null ? "" : `${name} ${key[at]}`)).filter(Boolean).join(", ");
  const typeOf = (query, variable) => {
    const found = data.queries[query].variables.find(([name]) => name === variable);
    return found ? found[1] : "";
  };

  // --- which matches are shown ----------------------------------------------------------------------------

  data.matches.forEach((match, number) => {
    match.number = number;
    match.words = [data.queries[match[QUERY]].name, keyText(match[KEY]), match[MISSING].join(" "), match[VALUES].join(" "),
      ...match[EVENTS].map(([, row]) => (eventOf(row) || []).slice(1).join(" "))].join(" ").toLowerCase();
  });
  data.near.forEach((place, number) => {
    place.number = number;
    place.words = [data.queries[place.query].name, keyText(place.key), place.headline, place.lines.join(" ")]
      .join(" ").toLowerCase();
  });

  function binOf(tick) {
    const low = data.edges[0], width = data.edges[1] - data.edges[0];
    return Math.max(0, Math.min(data.edges.length - 2, Math.floor((tick - low) / width)));
  }

  const isIn = (tick, query) => !state.bins ||
    (binOf(tick) >= state.bins[0] && binOf(tick) <= state.bins[1] && (state.plot === null || state.plot === query));

  function shownMatches() {
    const found = data.matches.filter((match) => isIn(match[END], match[QUERY]) &&
      (state.errors === "" || match[ERRORS] === +state.errors) &&
      (state.query === "" || match[QUERY] === +state.query) && (!state.text || match.words.includes(state.text)));
    return sorted(found, (match) => COLUMNS.find((column) => column.id === state.sort.by).value(match));
  }

  function shownNear() {
    return data.near.filter((place) => isIn(place.tick, place.query) &&
      (state.query === "" || place.query === +state.query) && (!state.text || place.words.includes(state.text)));
  }

  function sorted(found, value) {
    if (!state.sort) return found;
    const sign = state.sort.down ? -1 : 1;
    return found.map((item) => [value(item), item]).sort(([one, first], [other, second]) =>
      sign * (typeof one === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true })) ||
      first.number - second.number).map(([, item]) => item);
  }

  const extra = [...new Set(data.queries.flatMap((query) => query.columns))].slice(0, 6);
  const COLUMNS = [
    { id: "end", name: "ends", value: (match) => match[END], cell: (match) => brief(match[END]) },
    ...(many ? [{ id: "query", name: "query", value: (match) => data.queries[match[QUERY]].name }] : []),
    ...data.keys.map((name, at) => ({ id: "key" + at, name, value: (match) => (match[KEY][at] === null ? "-" : match[KEY][at]) })),
    ...(data.matches.some((match) => match[ERRORS]) ? [
      { id: "errors", name: "errors", number: true, value: (match) => match[ERRORS] },
      { id: "missing", name: "missing", value: (match) => match[MISSING].join(", ") },
    ] : []),
    ...extra.map((name) => ({ id: "value" + name, name, value: (match) => {
      const at = data.queries[match[QUERY]].columns.indexOf(name);
      const text = at < 0 || match[VALUES][at] === null ? "-" : match[VALUES][at];
      return text !== "-" && text !== "" && isFinite(text) ? +text : text;
    }, cell: (match) => {
      const at = data.queries[match[QUERY]].columns.indexOf(name);
      return at < 0 || match[VALUES][at] === null ? "-" : match[VALUES][at];
    } })),
    { id: "took", name: "took", number: true, value: (match) => match[END] - match[START],
      cell: (match) => lasting(match[END] - match[START]) },
  ];
  const NEAR = [
    { name: "place", cell: (place) => brief(place.tick) },
    ...(many ? [{ name: "query", cell: (place) => data.queries[place.query].name }] : []),
    ...data.keys.map((name, at) => ({ name, cell: (place) => (place.key[at] === null ? "-" : place.key[at]) })),
    { name: "waited for", cell: (place) => (place.why === "shed" ? "-" : place.awaited.join(", ") || "-") },
    { name: "ended", cell: (place) => place.why },
  ];

  // --- the list -------------------------------------------------------------------------------------------

  const root = byId("explorer");
  const rows = make("div", { class: "rows", tabindex: "-1" });
  const counted = make("p", { class: "count", role: "status", "aria-live": "polite" });
  const detail = make("div", { class: "detail", role: "region", "aria-label": "the one that is picked", tabindex: "-1" });
  const tabs = {};

  function build() {
    const tablist = make("div", { role: "tablist", "aria-label": "what is listed" });
    const shed = data.near.some((place) => place.why === "shed");
    const named = [["matches", `Matches (${count(data.matches.length)})`], ["near", `${shed ? "Shed, or nearly matched" : "Nearly matched"} (${count(data.near.length)})`]];
    for (const [id, name] of named) {
      if (!data[id].length) continue;
      tabs[id] = make("button", { role: "tab", id: "tab-" + id, "aria-controls": "panel", type: "button",
        onclick: () => { state.tab = id; show(); }, onkeydown: (event) => {
          if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
            const ids = Object.keys(tabs);
            state.tab = ids[(ids.indexOf(id) + 1) % ids.length];
            show();
            tabs[state.tab].focus();
          }
        } }, name);
      tablist.append(tabs[id]);
    }
    root.append(tablist, tools(), make("div", { class: "split", role: "tabpanel", id: "panel" },
      make("div", {}, rows, counted), detail));
  }

  function tools() {
    const changed = (name) => (event) => { state[name] = event.target.value.toLowerCase(); state.rows = PAGE; show(); };
    const bar = make("div", { class: "tools" },
      make("input", { type: "search", placeholder: "find a key, a value ...", "aria-label": "show only what contains this text",
        oninput: changed("text") }));
    if (many) {
      bar.append(make("select", { "aria-label": "of which query", onchange: changed("query") },
        make("option", { value: "" }, "all queries"),
        ...data.queries.map((query, at) => make("option", { value: at }, query.name))));
    }
    const levels = [...new Set(data.matches.map((match) => match[ERRORS]))].sort((one, other) => one - other);
    if (levels.length > 1) {
      bar.append(make("select", { id: "errors", "aria-label": "with how many errors", onchange: changed("errors") },
        make("option", { value: "" }, "any errors"),
        ...levels.map((level) => make("option", { value: level }, plural(level, "error")))));
    }
    return bar;
  }

  function show() {
    for (const [id, tab] of Object.entries(tabs)) {
      tab.setAttribute("aria-selected", id === state.tab);
      tab.tabIndex = id === state.tab ? 0 : -1;
    }
    const errors = byId("errors");
    if (errors) errors.hidden = state.tab === "near";
    byId("panel").setAttribute("aria-labelledby", "tab-" + state.tab);
    if (state.tab === "matches") showMatches(); else showNear();
    sayChosen();
  }

  function showMatches() {
    const found = shownMatches();
    if (found.length && !found.some((match) => match.number === state.match)) state.match = found[0].number;
    table(COLUMNS, found, state.match, (match) => match.number, pickMatch, (column) => () => {
      if (!column.id) return;
      state.sort = { by: column.id, down: state.sort && state.sort.by === column.id ? !state.sort.down : false };
      show();
    });
    const total = data.queries.reduce((sum, query) => sum + query.total, 0);
    const all = data.matches.length;
    const filtered = found.length < all ? `${count(found.length)} of ` : "";
    counted.textContent = all < total ? `${filtered}${count(all)} listed; ${data.in_all} matches in all` :
      `${filtered}${plural(all, "match", "matches")}`;
    if (found.length) showMatch(data.matches[state.match]); else nothing();
  }

  function showNear() {
    const found = shownNear();
    if (found.length && !found.some((place) => place.number === state.near)) state.near = found[0].number;
    table(NEAR, found, state.near, (place) => place.number, pickNear, null);
    counted.textContent = found.length < data.near.length ? `${count(found.length)} of ${plural(data.near.length, "place")}` :
      plural(found.length, "place");
    if (found.length) showPlace(data.near[state.near]); else nothing();
  }

  function table(columns, found, picked, numberOf, pick, sort) {
    const head = columns.map((column) => {
      const by = state.sort && column.id && state.sort.by === column.id;
      return make("th", { scope: "col", class: column.number ? "n" : null,
        "aria-sort": by ? (state.sort.down ? "descending" : "ascending") : null },
        make("button", { type: "button", onclick: sort ? sort(column) : () => {}, disabled: !sort },
          column.name + (by ? (state.sort.down ? " ↓" : " ↑") : "")));
    });
    const body = make("tbody", {});
    found.slice(0, state.rows).forEach((item) => body.append(row(columns, item, numberOf(item) === picked, () => pick(numberOf(item)))));
    const at = rows.scrollTop;
    rows.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...head)), body));
    if (found.length > state.rows) {
      rows.append(make("div", { class: "more" }, make("button", { type: "button", onclick: () => { state.rows += 5 * PAGE; show(); } },
        `show more (${count(found.length - state.rows)})`)));
    }
    rows.scrollTop = at;
  }

  function row(columns, item, isPicked, pick) {
    const cells = columns.map((column, at) => {
      const text = (column.cell || column.value)(item);
      let inside = String(text);
      if (at === 0) {
        inside = make("button", { type: "button", "aria-pressed": isPicked, onclick: (event) => { event.stopPropagation(); pick(); },
          onkeydown: (event) => {
            const next = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
            const other = next && event.target.closest("tr")[next];
            if (other) { event.preventDefault(); other.querySelector("button").click(); focusPicked(); }
          } }, inside);
      } else if (column.id === "errors") {
        inside = make("span", { class: "badge e" + colour(+text) }, inside);
      }
      return make("td", { class: column.number ? "n" : null, title: at && column.id !== "errors" && String(text).length > 22 ? text : null }, inside);
    });
    return make("tr", { class: isPicked ? "on" : null, onclick: pick }, ...cells);
  }

  function focusPicked() {
    const button = rows.querySelector("tr.on button");
    if (button) button.focus();
  }

  function nothing() {
    detail.replaceChildren(make("p", { class: "soft" }, "Nothing fits what is chosen."));
  }

  function pickMatch(number) {
    state.match = number;
    remember("m" + number);
    repick(showMatches);
  }

  function pickNear(number) {
    state.near = number;
    remember("n" + number);
    repick(showNear);
  }

  /** Show another one; where it would be below what is seen, go there. */
  function repick(shown) {
    const hadFocus = rows.contains(document.activeElement);
    shown();
    if (hadFocus) focusPicked();
    if (detail.getBoundingClientRect().top > innerHeight * 0.8) detail.scrollIntoView({ behavior: "smooth", block: "nearest" });
  }

  function remember(place) {
    try { history.replaceState(null, "", "#" + place); } catch (error) { /* not everywhere allowed; nothing depends on it */ }
  }

  // --- one match, one place -------------------------------------------------------------------------------

  function showMatch(match) {
    const query = data.queries[match[QUERY]];
    const items = timesOf(match[EVENTS]);
    const parts = [make("h3", {}, capital(sentence(match, query, items)))];
    if (items.length) parts.push(line(query, match[QUERY], items, match[MISSING], match[START], match[END]));
    parts.push(conditions(query, items, match[MISSING]));
    if (match[VALUES].length) parts.push(values(query.columns, match[VALUES]));
    if (items.length) parts.push(eventTable(match[QUERY], items, match[MISSING]));
    if (match[HIDDEN]) parts.push(make("p", { class: "soft" }, `${plural(match[HIDDEN], "event")} more of this match left out`));
    detail.replaceChildren(...parts.filter(Boolean));
    mark(null);
  }

  function showPlace(place) {
    const query = data.queries[place.query];
    const items = timesOf(place.events);
    const parts = [make("h3", {}, capital(place.headline)),
      items.length ? line(query, place.query, items, place.awaited, place.start, place.tick) : null, said(place.lines)];
    if (place.helps.length) {
      parts.push(make("p", { class: "soft" }, "It would match with"),
        make("div", { class: "helps" }, ...place.helps.map((text) => make("span", {}, text))));
    }
    if (items.length) parts.push(eventTable(place.query, items, []));
    if (place.ask) parts.push(make("details", {}, make("summary", {}, "ask again"), make("pre", { class: "wrap" }, make("code", {}, place.ask))));
    detail.replaceChildren(...parts.filter(Boolean));
    mark(place.number);
  }

  /** Lines in words; those that begin with blanks belong to the one before. */
  function said(lines) {
    const list = make("ul", { class: "lines" });
    for (const text of lines) {
      const inner = text.startsWith("  ") && list.lastElementChild;
      if (inner) {
        if (!inner.lastElementChild) inner.append(make("ul", {}));
        inner.lastElementChild.append(make("li", {}, text.trim()));
      } else list.append(make("li", {}, text.trim()));
    }
    return lines.length ? list : null;
  }

  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  const timesOf = (events) => events.map(([variable, row]) => ({ variable, row, event: eventOf(row) }))
    .filter((item) => item.event).map((item) => ({ ...item, tick: item.event[0], type: item.event[1] }));

  /** The match in a sentence: what came when, and what is missing. */
  function sentence(match, query, items) {
    const head = match[KEY].some((value) => value !== null) ? keyWords(match[KEY]) + ": " : "";
    const groups = [];
    for (const item of items) {
      const last = groups[groups.length - 1];
      if (last && last.variable === item.variable) { last.number += 1; last.until = item.tick; } else {
        groups.push({ variable: item.variable, type: item.type, tick: item.tick, until: item.tick, number: 1 });
      }
    }
    let before = null;
    const digits = digitsOf(match[END] - match[START]);
    const named = groups.slice(0, 6).map((group) => {
      const name = group.variable && group.type && group.variable !== group.type ? `${group.variable} (${group.type})` :
        group.variable || group.type || "an event";
      const at = moment(group.tick, before, digits);
      before = group.until;
      return group.number > 1 ? `${group.number} × ${name} from ${at} to ${moment(group.until, group.tick, digits)}` : `${name} at ${at}`;
    });
    if (groups.length > 6) named.push(`${groups.length - 6} more`);
    const came = named.length > 1 ? named.slice(0, -1).join(", ") + " and " + named[named.length - 1] : named[0] || "";
    const text = came ? `${head}${came}.` : `${head}a result from ${moment(match[START])} to ${moment(match[END], match[START])}.`;
    if (!match[MISSING].length) return text;
    const gone = match[MISSING].map((name) => (typeOf(match[QUERY], name) ? `${name} (${typeOf(match[QUERY], name)})` : name));
    return `${text} ${gone.join(", ")} ${gone.length === 1 ? "is" : "are"} missing: ${plural(match[ERRORS], "error")}.`;
  }

  function conditions(query, items, missing) {
    if (!query.conditions.length) return null;
    const counts = {};
    items.forEach((item) => { (counts[item.variable] = counts[item.variable] || []).push(item); });
    return make("ul", { class: "conditions" }, ...query.conditions.map(([text, reads]) => {
      const gone = reads.find(([variable]) => missing.includes(variable));
      const isOne = ([variable, name]) => (counts[variable] || []).length === 1 && data.attributes.includes(name);
      const found = reads.filter(isOne).map(([variable, name]) => {
        const value = counts[variable][0].event[2 + data.attributes.indexOf(name)];
        return `${variable}.${name} = ${value === null || value === undefined ? "NULL" : value}`;
      });
      const note = gone ? `not tested: ${gone[0]} is missing` : found.join(", ");
      return make("li", {}, make("code", {}, text), note ? make("span", {}, note) : null);
    }));
  }

  function values(names, found) {
    return make("dl", {}, ...names.flatMap((name, at) => [make("dt", {}, name), make("dd", {}, found[at] === null ? "-" : found[at])]));
  }

  function eventTable(query, items, missing) {
    const columns = data.attributes.map((name, at) => at)
      .filter((at) => items.some((item) => item.event[2 + at] !== null && item.event[2 + at] !== undefined));
    const named = items.some((item) => item.variable);
    const typed = items.some((item) => item.type);
    const head = [...(named ? ["event"] : []), ...(typed ? ["type"] : []), "time", ...columns.map((at) => data.attributes[at]), "row"];
    const body = placed(query, items, missing).slice(0, 60).map((item) => item.gone ?
      make("tr", { class: "gone" }, make("td", {}, item.variable), ...(typed ? [make("td", {}, typeOf(query, item.variable))] : []),
        make("td", { colspan: columns.length + 2 }, "missing")) :
      make("tr", {}, ...(named ? [make("td", {}, item.variable)] : []), ...(typed ? [make("td", {}, item.type || "-")] : []),
        make("td", {}, moment(item.tick, items[0].tick !== item.tick ? items[0].tick : null)),
        ...columns.map((at) => make("td", {}, item.event[2 + at] === null ? "-" : item.event[2 + at])), make("td", {}, count(item.row))));
    return make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "the events" }, make("table", {},
      make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))), make("tbody", {}, ...body)));
  }

  /** Events with the missing ones where the pattern has them: behind the last one before, in the order of the query. */
  function placed(query, items, missing) {
    const order = data.queries[query].variables.map(([name]) => name);
    const all = items.slice();
    for (const variable of missing) {
      const rank = order.indexOf(variable);
      let at = 0;
      all.forEach((item, place) => { if (order.indexOf(item.variable) < rank) at = place + 1; });
      all.splice(at, 0, { variable, gone: true });
    }
    return all;
  }

  // --- the line -------------------------------------------------------------------------------------------

  const ruler = document.createElement("canvas").getContext("2d");
  function wide(text, bold) {
    ruler.font = `${bold ? "600 " : ""}12px ${getComputedStyle(document.body).fontFamily}`;
    return ruler.measureText(text).width;
  }

  function cut(text, most) {
    return text.length > most ? text.slice(0, most - 1) + "…" : text;
  }

  /** A line of the time of one match: its window, its events, the missing ones between their neighbours. */
  function line(query, number, items, missing, start, end) {
    const holder = make("div", { class: "drawn" });
    holder.redraw = () => {
      const width = Math.max(220, holder.clientWidth || detail.clientWidth - 36);
      holder.replaceChildren(lineOf(query, number, items, missing, start, end, width));
    };
    requestAnimationFrame(holder.redraw);
    return holder;
  }

  function lineOf(query, number, items, missing, start, end, width) {
    const spread = Math.max(end - start, 0);
    const closes = query.span ? start + query.span : null;
    const far = closes === null ? end : Math.min(closes, end + (spread ? 0.3 * spread : query.span));
    const length = Math.max(far - start, 1), pad = 14, room = Math.min(64, width / 6);
    const all = placed(number, items, missing);
    const lead = all.findIndex((item) => !item.gone), trail = all.length - 1 - all.findLastIndex((item) => !item.gone);
    const left = pad + room * lead, right = width - pad - (far > end ? 0 : room * trail);
    const x = (tick) => left + ((tick - start) / length) * (right - left);
    place(all, x, pad, far > end ? x(far) : width - pad);
    const digits = digitsOf(spread);
    const labels = all.map((item) => label(item, query, digits));
    const lanes = arrange(labels, width);
    const top = 8 + lanes.reduce((sum, lane) => sum + lane, 0), base = top + 16;
    let below = top;
    const heights = lanes.map((lane) => (below -= lane, below));
    const parts = [];
    if (query.span) parts.push(draw("rect", { class: "window", x: left, y: base - 12, width: Math.max(x(far) - left, 1), height: 24, rx: 4 }));
    parts.push(draw("path", { class: "axis", d: `M${all.length ? Math.min(left, all[0].x) : left} ${base}H${Math.max(x(far), ...all.map((item) => item.x))}` }));
    if (closes !== null && far >= closes) parts.push(draw("path", { class: "edge", d: `M${x(far)} ${base - 14}v28` }));
    for (const one of labels) {
      one.y = heights[one.lane];
      parts.push(draw("path", { class: one.item.gone ? "gone-lead" : "lead", d: `M${one.item.x} ${base - 6}V${one.y + one.lines.length * 15 + 3}` }));
    }
    for (const item of all) {
      parts.push(draw("circle", { class: item.gone ? "gone" : "event", cx: item.x, cy: base, r: item.gone ? 6 : 5.5 },
        draw("title", {}, item.gone ? `${item.variable}: missing` : `${item.variable || item.type || ""} ${moment(item.tick)}`.trim())));
    }
    for (const one of labels) {
      one.lines.forEach((text, at) => parts.push(draw("text", { x: one.left, y: one.y + 11 + at * 15,
        class: at ? null : one.item.gone ? "gone-name" : "name" }, text)));
    }
    const under = base + 30;
    const begins = moment(start, null, digits);
    parts.push(draw("text", { x: left, y: under }, begins));
    const ends = closes !== null && far < closes ? `window until ${moment(closes, start, digits)} →` : closes !== null ?
      `window closes ${moment(closes, start, digits)}` : spread ? moment(end, start, digits) : "";
    const fits = left + wide(begins) + wide(ends) + pad + 12 < width;
    parts.push(draw("text", { x: width - pad, y: fits ? under : under + 16, "text-anchor": "end" }, ends));
    const height = fits ? under + 8 : under + 24;
    const told = `${items.map((item) => `${item.variable || item.type} at ${moment(item.tick)}`).slice(0, 12).join(", ")}` +
      (missing.length ? `; missing: ${missing.join(", ")}` : "") + (query.window ? `; window ${query.window}` : "");
    return draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": told }, ...parts);
  }

  /** Places on the line: events by their time; missing ones spread between their neighbours. */
  function place(all, x, left, right) {
    all.forEach((item) => { if (!item.gone) item.x = x(item.tick); });
    for (let at = 0; at < all.length; at += 1) {
      if (!all[at].gone) continue;
      let last = at;
      while (last + 1 < all.length && all[last + 1].gone) last += 1;
      const from = at ? all[at - 1].x : left, to = last + 1 < all.length ? all[last + 1].x : right;
      const step = (to - from) / (last - at + (at && last + 1 < all.length ? 2 : 1)); // at an end they stand at the end
      for (let i = at; i <= last; i += 1) all[i].x = from + step * (i - at + (at ? 1 : 0));
      at = last;
    }
  }

  /** What stands above an event: its variable and type, its time, the attributes that the query uses. */
  function label(item, query, digits) {
    if (item.gone) {
      const type = query.variables.find(([name]) => name === item.variable);
      const lines = [cut(type && type[1] && type[1] !== item.variable ? `${item.variable} ${type[1]}` : item.variable, 22), "missing"];
      return { item, lines };
    }
    const name = [item.variable, item.type && item.type !== item.variable ? item.type : ""].filter(Boolean).join(" ");
    const used = data.attributes.slice(0, data.used).map((attribute, at) => [attribute, item.event[2 + at]])
      .filter(([attribute, value]) => value !== null && value !== undefined && query.uses.some(([variable, used_]) =>
        used_ === attribute && (!variable || !item.variable || variable === item.variable)))
      .slice(0, 3).map(([attribute, value]) => cut(`${attribute} ${value}`, 24));
    return { item, lines: [cut(name || "event", 22), data.time ? clock(item.tick, digits) : moment(item.tick), ...used] };
  }

  /** Give labels lanes so that none lies on another, nor on the line to another, if that can be; the heights of the
   *  lanes, from the line up. Of very many some stay away. */
  function arrange(labels, width) {
    const lanes = [[], [], [], [], [], []];
    const isUnder = (item, box) => item.x > box.left - 3 && item.x < box.right + 3;
    const isFree = (one, lane) => !lanes[lane].some((other) => one.left < other.right + 8 && other.left < one.right + 8);
    const crosses = (one, lane) => lanes.some((others, at) => others.some((other) =>
      (at < lane ? isUnder(one.item, other) : at > lane && isUnder(other.item, one))));
    labels.sort((one, other) => one.item.x - other.item.x);
    for (let at = labels.length - 1; at >= 0; at -= 1) {
      const one = labels[at];
      const room = Math.max(...one.lines.map((text, i) => wide(text, i === 0))) + 4;
      one.left = Math.max(2, Math.min(one.item.x - 3, width - room));
      one.right = one.left + room;
      const free = lanes.map((_, lane) => lane).filter((lane) => isFree(one, lane));
      const lane = free.find((number) => !crosses(one, number)) ?? free[0];
      if (lane === undefined) { labels.splice(at, 1); continue; }
      one.lane = lane;
      lanes[lane].push(one);
    }
    return lanes.map((lane) => (lane.length ? Math.max(...lane.map((one) => one.lines.length)) * 15 + 8 : 0));
  }

  // --- bars and places over time --------------------------------------------------------------------------

  const plots = [...document.querySelectorAll(".plot")];
  const bins = data.edges.length - 1;

  plots.forEach((plot) => {
    let first = null;
    let cursor = null;
    const query = many ? +plot.dataset.query : null;
    const at = (event) => {
      const box = plot.getBoundingClientRect();
      return Math.max(0, Math.min(bins - 1, Math.floor(((event.clientX - box.left) / box.width) * bins)));
    };
    plot.classList.add("can");
    plot.tabIndex = 0;
    plot.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      first = at(event);
      if (event.pointerType !== "touch") plot.setPointerCapture(event.pointerId);
      choose(first, first, query);
    });
    plot.addEventListener("pointermove", (event) => { if (first !== null) choose(Math.min(first, at(event)), Math.max(first, at(event)), query); });
    ["pointerup", "pointercancel"].forEach((name) => plot.addEventListener(name, () => { first = null; }));
    plot.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { choose(null); return; }
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        if (cursor !== null) choose(cursor, cursor, query);
        return;
      }
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const from = cursor === null ? (step > 0 ? -1 : bins) : cursor;
      cursor = Math.max(0, Math.min(bins - 1, from + step));
      if (event.shiftKey && state.bins) choose(Math.min(state.bins[0], cursor), Math.max(state.bins[1], cursor), query);
      box(plot, "cursor", cursor, cursor);
    });
    plot.addEventListener("blur", () => { plot.querySelectorAll(".cursor").forEach((node) => node.remove()); });
  });

  document.querySelectorAll(".dot").forEach((dot) => dot.addEventListener("click", () => {
    choose(null);
    state.tab = "near";
    state.text = state.query = "";
    root.querySelectorAll("input, select").forEach((input) => { input.value = ""; });
    show();
    pickNear(+dot.dataset.near);
    detail.scrollIntoView({ behavior: "smooth", block: "nearest" });
  }));

  function box(plot, name, low, high) {
    plot.querySelectorAll("." + name).forEach((node) => node.remove());
    if (low === null) return;
    plot.append(make("div", { class: name, style: `left:${(100 * low) / bins}%;width:${(100 * (high - low + 1)) / bins}%` }));
  }

  function choose(low, high, query = null) {
    state.bins = low === null ? null : [low, high];
    state.plot = query;
    state.rows = PAGE;
    plots.forEach((plot) => box(plot, "pick", query === null || +plot.dataset.query === query ? low : null, high));
    if (root) show();
  }

  function sayChosen() {
    const place = byId("chosen");
    if (!place) return;
    if (!state.bins) { place.replaceChildren(); return; }
    const [low, high] = state.bins;
    let points = 0;
    data.points.forEach((counts, query) => {
      if (state.plot !== null && state.plot !== query) return;
      for (let bin = low; bin <= high; bin += 1) points += counts[bin] || 0;
    });
    const begin = data.edges[low], end = data.edges[high + 1];
    const shown = state.tab === "matches" ? plural(shownMatches().length, "match", "matches") + " listed below" :
      plural(shownNear().length, "place") + " listed below";
    place.replaceChildren(`${moment(begin)} to ${moment(data.time ? end : end - 1, begin)}: ${plural(points, "match point")}, ${shown}`,
      make("button", { type: "button", onclick: () => choose(null) }, "show all"));
  }

  function mark(near) {
    document.querySelectorAll(".dot").forEach((dot) => dot.classList.toggle("on", +dot.dataset.near === near));
  }

  // --- begin ----------------------------------------------------------------------------------------------

  if (root) {
    build();
    const [, kind, number] = /^#([mn])(\d+)$/.exec(location.hash) || [];
    if (kind === "m" && +number < data.matches.length) state.match = +number;
    if (kind === "n" && +number < data.near.length) { state.near = +number; state.tab = "near"; }
    show();
    let width = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth === width) return; // a phone hides its bars
      width = innerWidth;
      document.querySelectorAll(".drawn").forEach((node) => node.redraw && node.redraw());
    });
  }
})();
