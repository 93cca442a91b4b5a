// --- logs ---

let logSource = null, listed = "", logChosen = false;

function listLogs(frame) {
  const names = frame.ranks.map((rank) => rank.role + " " + rank.rank);
  if (names.join() === listed) return;
  listed = names.join();
  const chosen = at("log-rank").value;
  at("log-rank").replaceChildren(element("option", "no rank"), ...names.map((name) => {
    const option = element("option", name.replace("trainer", "rank"));
    option.value = name;
    return option;
  }));
  at("log-rank").firstChild.value = "";
  at("log-rank").value = names.includes(chosen) ? chosen : "";
  if (chosen === "" && names.length > 0) openLog(names[0], false);
}

function openLog(name, scroll) {
  if (logSource) logSource.close();
  logSource = null;
  at("log-rank").value = name;
  const log = at("log");
  log.replaceChildren();
  log.hidden = name === "";
  if (name === "") return;
  const [role, rank] = name.split(" ");
  logSource = new EventSource("log?rank=" + rank + (role === "server" ? "&server=1" : ""));
  logSource.addEventListener("open", () => log.replaceChildren());  // it is sent again
  logSource.addEventListener("lines", (event) => {
    const { text, error } = JSON.parse(event.data);
    addLines(text, error ? "error" : "");
  });
  logSource.addEventListener("refused", (event) => {
    addLines(JSON.parse(event.data).text + "\n", "error");
    logSource.close();
  });
  if (scroll) log.scrollIntoView({ block: "nearest" });
}

function addLines(text, kind) {
  const log = at("log");
  for (const line of text.split("\n").slice(0, -1)) log.append(element("div", line === "" ? "\u00a0" : line, kind));
  while (log.childElementCount > kMostLogLines) log.firstChild.remove();
  followLog();
}

at("log-rank").addEventListener("change", () => {
  logChosen = true;
  openLog(at("log-rank").value, false);
});
// Only a person scrolls up.
let lastTop = 0;
at("log").addEventListener("scroll", () => {
  const log = at("log"), bottom = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
  if (bottom) at("log-follow").checked = true;
  if (!bottom && log.scrollTop < lastTop) at("log-follow").checked = false;
  lastTop = log.scrollTop;
});

function followLog() {
  if (at("log-follow").checked) at("log").scrollTop = at("log").scrollHeight;
}
