// The session page. It reads what the server says and shows it as text; it never builds markup from a string.

/** @typedef {{call_id: string, tool: string, state: "finished" | "unknown" | "not_started", because: string}} Call */
/** @typedef {{kind: "text", text: string} | {kind: "call", call_id: string} | {kind: "result", call_id: string, text: string, is_error: boolean}} Part */
/** @typedef {{role: "user" | "assistant", hidden: boolean, parts: Part[]}} Message */
/** @typedef {{id: string, ended: string | null, prompt: string, unknown: number, problem: string | null}} Summary */
/** @typedef {{id: string, ended: string | null, calls: Call[], messages: Message[]}} Session */

const SPEAKERS = { user: "User", assistant: "Assistant" };

/** Which request for a session is the newest: an older answer that arrives late changes nothing (P4). */
let newest = 0;

/** @param {string} id */
const element = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @param {string} name @param {string} text @param {Record<string, string>} attributes */
function made(name, text, attributes = {}) {
  const node = document.createElement(name);
  node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

/** @param {string | null} reason */
function endingOf(reason) {
  return reason === null ? "no end recorded: crashed or still running" : `ended: ${reason}`;
}

/** @param {string} path @returns {Promise<any>} */
async function read(path) {
  const answer = await fetch(path, { headers: { accept: "application/json" } });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error);
  return body;
}

/** @param {string} text */
function tell(text) {
  element("problem").hidden = true;
  element("status").textContent = text;
}

/** @param {unknown} error */
function complain(error) {
  const reason = error instanceof TypeError ? "the server does not answer" : String(error instanceof Error ? error.message : error);
  element("status").textContent = "";
  element("problem").textContent = `Could not read: ${reason}.`;
  element("problem").hidden = false;
}

const chosen = () => decodeURIComponent(location.hash.slice(1));

async function showList() {
  /** @type {{sessions: Summary[]}} */
  const { sessions } = await read("/sessions");
  element("sessions").replaceChildren(
    ...sessions.map((summary) => {
      const link = made("a", "", { href: `#${summary.id}` });
      link.append(
        made("strong", summary.prompt || "(no prompt)"),
        made("span", summary.problem ? `cannot be read: ${summary.problem}` : endingOf(summary.ended), { class: "quiet" }),
        made("span", summary.id, { class: "quiet" }),
      );
      if (summary.unknown > 0) link.append(made("span", `${summary.unknown} unknown`, { class: "call", "data-state": "unknown" }));
      const item = document.createElement("li");
      item.append(link);
      return item;
    }),
  );
  markChosen();
  return sessions.length;
}

function markChosen() {
  for (const link of element("sessions").querySelectorAll("a")) {
    if (link.getAttribute("href") === `#${chosen()}`) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

/** @param {Call} call */
const label = (call) => made("span", `${call.tool} · ${call.state}`, { class: "call", "data-state": call.state });

/** @param {Part} part @param {Map<string, Call>} calls */
function shownPart(part, calls) {
  const call = part.kind === "text" ? undefined : calls.get(part.call_id);
  if (part.kind === "call") return call ? label(call) : made("span", part.call_id, { class: "call" });
  if (part.kind === "text") return made("pre", part.text);
  const block = document.createElement("div");
  block.append(made("p", `${part.is_error ? "Error" : "Result"} of ${call ? call.tool : part.call_id}`, { class: "quiet" }));
  block.append(made("pre", part.text));
  return block;
}

/** @param {Session} session */
function showSession(session) {
  const calls = new Map(session.calls.map((call) => [call.call_id, call]));
  element("title").textContent = `Session ${session.id}`;
  element("ending").textContent = endingOf(session.ended);
  element("calls-section").hidden = session.calls.length === 0;
  element("messages-section").hidden = false;
  const count = (/** @type {string} */ state) => session.calls.filter((call) => call.state === state).length;
  element("counts").textContent = `${count("finished")} finished, ${count("unknown")} unknown, ${count("not_started")} not started`;
  element("calls").replaceChildren(
    ...session.calls.map((call) => {
      const item = document.createElement("li");
      item.append(label(call), made("p", call.because));
      return item;
    }),
  );
  element("messages").replaceChildren(
    ...session.messages.map((message) => {
      const item = document.createElement("li");
      item.append(made("strong", message.hidden ? "Runtime" : SPEAKERS[message.role]), ...message.parts.map((part) => shownPart(part, calls)));
      return item;
    }),
  );
}

/** @param {boolean} moveFocus Whether a person chose the session just now, so that the focus follows. */
async function openChosen(moveFocus) {
  const id = chosen();
  if (!id) return;
  const mine = ++newest;
  markChosen();
  try {
    const session = await read(`/sessions/${encodeURIComponent(id)}`);
    if (mine !== newest) return;
    showSession(session);
    tell(`Session ${id} read.`);
    if (moveFocus) element("conversation").focus();
  } catch (error) {
    if (mine === newest) complain(error);
  }
}

async function readAll() {
  try {
    const count = await showList();
    tell(count === 0 ? "No sessions yet." : `${count} ${count === 1 ? "session" : "sessions"}.`);
  } catch (error) {
    complain(error);
    return;
  }
  await openChosen(false);
}

addEventListener("hashchange", () => openChosen(true));
element("skip").addEventListener("click", (event) => {
  // The address names the chosen session, so that a reload keeps it; skipping must not overwrite it.
  event.preventDefault();
  element("conversation").focus();
});
element("again").addEventListener("click", readAll);
await readAll();
