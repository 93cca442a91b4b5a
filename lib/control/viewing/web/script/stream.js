// --- the end ---

function showOutcome(how) {
  at("job").hidden = false;
  outcome = how;
  setState(how.state, how.state === "succeeded" ? "good" : "bad");
  at("outcome").hidden = how.text === "";
  at("outcome-state").textContent = "Verdict: " + how.state;
  at("outcome-text").textContent = how.text;
  if (lastFrame) {
    showFacts(lastFrame);
    showRanks(lastFrame);
  }
  drawCurves();
  const culprit = lastFrame && lastFrame.ranks.find(failed);
  if (culprit && !logChosen) openLog(culprit.role + " " + culprit.rank, false);
}

// --- the stream ---

function connect() {
  const events = new EventSource("events");
  const on = (name, handle) => events.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  on("history", (history) => { takeHistory(history); drawCurves(); drawHeat(); });
  on("frame", (frame) => { addPoint(frame); showFrame(frame); drawCurves(); drawHeat(); });
  on("silence", (silence) => { at("job").hidden = false; setState(silence.text, "bad"); });
  on("ended", showOutcome);
  on("curves", showListCurves);
  on("jobs", showJobs);
  events.addEventListener("error", () => setState("no connection: is it still running?", "bad"));
}

at("back").hidden = !/\/jobs\/[0-9]+\/$/.test(location.pathname);
makeCurves();
makeHeat();
makeList();
addEventListener("resize", () => {
  drawCurves();
  if (points.length > 1) drawHeat();
  cards.forEach((_, number) => drawListCurve(number));
  followLog();
});
at("log-follow").addEventListener("change", followLog);
connect();
