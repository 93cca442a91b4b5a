#!/usr/bin/env bash
# Checks that the targets of relative links in Markdown pages exist: the file, and the heading or <a name> of the anchor.
# Prints one line per dead link and exits with 1 if there is one.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

git ls-files -co --exclude-standard -- '*.md' | while read -r page; do [ ! -e "$page" ] || echo "$page"; done | sort |
  xargs -r awk '
  # The anchor that GitHub derives from a heading: lower case, no punctuation, dashes for blanks.
  function anchor_of(heading) {
    heading = tolower(heading)
    while (match(heading, /\[[^]]*\]\([^)]*\)/))
      heading = substr(heading, 1, RSTART - 1) text_of(substr(heading, RSTART, RLENGTH)) substr(heading, RSTART + RLENGTH)
    gsub(/[][`.,:;()\/"'\''*+?!<>=&~|$@#%^{}]/, "", heading)
    gsub(/ /, "-", heading)
    return heading
  }
  function text_of(link) { return substr(link, 2, index(link, "]") - 2) }
  # docs/how-to + ../reference/a.md -> docs/reference/a.md
  function resolved(folder, target,   part, n, i, kept, path) {
    n = split(folder "/" target, part, "/"); kept = 0
    for (i = 1; i <= n; i++) {
      if (part[i] == "" || part[i] == ".") continue
      if (part[i] == ".." && kept > 0) { kept--; continue }
      stack[++kept] = part[i]
    }
    path = stack[1]
    for (i = 2; i <= kept; i++) path = path "/" stack[i]
    return path
  }
  FNR == 1 { code = 0; folder = FILENAME; if (!sub(/\/[^\/]*$/, "", folder)) folder = "." }
  /^ *```/ { code = !code; next }
  code { next }
  /^#+ / { heading = $0; sub(/^#+ +/, "", heading); anchors[FILENAME "#" anchor_of(heading)] }
  {
    line = $0
    while (match(line, /<a name="[^"]*"/)) {
      anchors[FILENAME "#" substr(line, RSTART + 9, RLENGTH - 10)]
      line = substr(line, RSTART + RLENGTH)
    }
    line = $0
    gsub(/`[^`]*`/, "", line)
    while (match(line, /\]\([^) ]+\)/)) {
      link = substr(line, RSTART + 2, RLENGTH - 3)
      line = substr(line, RSTART + RLENGTH)
      if (link ~ /^[a-z]+:/) continue
      n_links++; from[n_links] = FILENAME ":" FNR; to[n_links] = link
      target = link; sub(/#.*/, "", target)
      path[n_links] = target == "" ? FILENAME : resolved(folder, target)
    }
  }
  END {
    for (i = 1; i <= n_links; i++) {
      anchor = index(to[i], "#") ? substr(to[i], index(to[i], "#") + 1) : ""
      if (system("test -e \"" path[i] "\"") != 0) { print from[i] ": " to[i] " does not exist"; bad = 1; continue }
      if (anchor != "" && path[i] ~ /\.md$/ && !((path[i] "#" anchor) in anchors)) {
        print from[i] ": " to[i] " has no such heading"; bad = 1
      }
    }
    exit bad
  }'
