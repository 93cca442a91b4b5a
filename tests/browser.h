// Headless Chromium, for tests of pages (browser.py).
#pragma once

#include <cstdlib>

namespace fleet {

// Why a page cannot be looked at here; nullptr if it can.
inline const char* browser_missing() {
  const bool python = std::system("command -v python3 >/dev/null") == 0;
  const bool chromium = std::system("command -v chromium >/dev/null") == 0;
  return !python     ? "python3 is not installed"
         : !chromium ? "Chromium is not installed: apt-get install chromium"
                     : nullptr;
}

}  // namespace fleet
