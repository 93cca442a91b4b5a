"""Measures pages with headless Chromium: page_widths.py FOLDER

Serves FOLDER: NAME.html is a page, and NAME/ one with page.css, page.js and its stream, the file `events`. Opens each of them 380 and
1280 pixels wide, and prints as JSON what a person would stumble over.
"""
import functools
import http.server
import json
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))  # tests
from browser import Browser

WIDTHS = [380, 1280]
# By the beginning of a name: when the page shows all of its stream.
READY = {"running": "lastFrame !== null", "failed": "outcome !== null", "list": "listCurves.size > 0", "report": "true"}
# A word is broken if its characters are on two lines.
MEASURE = """JSON.stringify((() => {
  const name = (e) => e.tagName.toLowerCase() + (e.id ? '#' + e.id : '') + ': ' + e.textContent.slice(0, 40);
  const shown = (e) => e.getClientRects().length > 0;
  const broken = (head) => {
    const walker = document.createTreeWalker(head, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (const word of node.data.matchAll(/\\S+/g)) {
        const range = document.createRange();
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) return true;
      }
    }
    return false;
  };
  const texts = [...document.querySelectorAll('svg text')].filter(shown);
  const scale = (map) => Math.hypot(map.a, map.b);  // of turned text, too
  const sizes = texts.map((t) => parseFloat(getComputedStyle(t).fontSize) * scale(t.getScreenCTM()));
  return {
    scroll_width: document.scrollingElement.scrollWidth, client_width: document.scrollingElement.clientWidth,
    scrolled: [...document.querySelectorAll('body *')].filter((e) => shown(e) && e.clientWidth > 0 &&
      e.scrollWidth > e.clientWidth + 1 && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX)).map(name),
    broken_heads: [...document.querySelectorAll('th')].filter((e) => shown(e) && broken(e)).map(name),
    heads: document.querySelectorAll('th').length,
    charts: [...document.querySelectorAll('svg')].filter((e) => shown(e) && e.querySelector('path')).length,
    smallest_text: sizes.length > 0 ? Math.min(...sizes) : null,
    failed: [...document.querySelectorAll('tr.failed td:first-child')].map((e) => e.textContent),
    text: document.body.innerText.slice(0, 4000)};
})())"""


class Pages(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if not self.path.endswith("/events"):
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write((pathlib.Path(self.directory) / self.path[1:]).read_bytes())
        self.wfile.flush()
        threading.Event().wait()  # a stream that ended would be opened again

    def log_message(self, *_):
        pass


def wait_for_page(browser, name):
    ready = READY[name.rstrip("/").split(".")[0]]
    end = time.monotonic() + 60
    while not browser.value(f"location.pathname === '/{name}' && document.readyState === 'complete' && {ready}"):
        if time.monotonic() > end:
            raise RuntimeError("the page has not come: " + str(browser.value("document.body.innerText")))
        time.sleep(0.02)


def main(folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Pages, directory=folder))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    names = sorted(one.name + ("/" if one.is_dir() else "") for one in pathlib.Path(folder).iterdir())
    found = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        try:
            target = browser.call("Target.createTarget", url="about:blank")["targetId"]
            browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for width in WIDTHS:
                browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
                for name in names:
                    browser.call("Page.navigate", url=f"http://127.0.0.1:{server.server_port}/{name}")
                    wait_for_page(browser, name)
                    found.append({"page": name, "width": width, **json.loads(browser.value(MEASURE))})
        finally:
            browser.process.kill()
            browser.process.wait()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
