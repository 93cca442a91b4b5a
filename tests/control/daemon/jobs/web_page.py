"""Looks at a page with headless Chromium: web_page.py URL PICTURE TEXT

Waits until TEXT is on the page, and then, for a wide screen, a dark one and one of 380 pixels, saves PICTURE.NAME.png. Prints what
is there as JSON: messages of the console and failed requests, addresses of other hosts that were asked for, and each screen's facts.
By HTTPS, any certificate will do.
"""
import base64
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))  # tests
from browser import Browser, messages

SCREENS = [("wide", 1200, 1000, "light"), ("dark", 1200, 1000, "dark"), ("phone", 380, 800, "light")]
FACTS = """JSON.stringify({
  width: document.documentElement.clientWidth, content_width: document.documentElement.scrollWidth,
  name: document.getElementById('name').textContent, title: document.title,
  state: document.getElementById('state').textContent,
  curves: [...document.querySelectorAll('figure')].filter((f) => !f.hidden && f.querySelector('path')).length,
  rows: document.querySelectorAll('#ranks td:first-child').length,
  heat: (() => { const c = document.getElementById('heat'); if (!c.clientHeight || !c.width) return false;
    const copy = new OffscreenCanvas(c.width, c.height).getContext('2d', { willReadFrequently: true });
    copy.drawImage(c, 0, 0);
    return copy.getImageData(0, 0, c.width, c.height).data.some((v) => v > 0); })(),
  log: document.getElementById('log').textContent.slice(0, 2000)})"""


def main(url, picture, text):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:  # Chromium may still write
        browser = Browser(profile, any_certificate=url.startswith("https:"))
        try:
            target = browser.call("Target.createTarget", url="about:blank")["targetId"]
            browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                browser.call(domain + ".enable")
            browser.call("Page.navigate", url=url)
            end = time.monotonic() + 90
            while time.monotonic() < end:
                shown = browser.value("document.body.innerText")
                if shown and text in shown and browser.value("!document.getElementById('jobs').hidden || points.length > 8"):
                    break
                time.sleep(0.2)
            else:
                raise RuntimeError("the text has not come: " + str(browser.value("document.body.innerText")))
            screens = []
            for name, width, height, scheme in SCREENS:
                browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                             mobile=width < 500)
                time.sleep(1.5)  # another frame
                screens.append(json.loads(browser.value(FACTS)))
                image = browser.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
                with open(f"{picture}.{name}.png", "wb") as file:
                    file.write(base64.b64decode(image))
            asked = [event["params"]["request"]["url"] for event in browser.events
                     if event.get("method") == "Network.requestWillBeSent"]
            own = url.split("/?")[0]
            print(json.dumps({"messages": list(messages(browser.events)), "screens": screens,
                              "elsewhere": [one for one in asked if not one.startswith((own, "data:", "about:"))]}))
        finally:
            browser.process.kill()
            browser.process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:4])
