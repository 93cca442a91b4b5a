#!/usr/bin/env bash
# link.sh SECONDS COMMAND...: links. A link that has not ended after that time is killed and started again, twice at most,
# each time with twice the time. Debian's mold 1.10 may wait or loop for ever (github.com/rui314/mold/issues/898). No link takes
# more than a few seconds.
limit=$1
shift
for ((try = 1; ; ++try)); do
  timeout -k 10 "$limit" "$@" &
  link=$!
  trap 'kill $link; exit 130' INT TERM HUP
  wait $link
  status=$?
  if [ $try = 3 ] || { [ $status != 124 ] && [ $status != 137 ]; }; then exit $status; fi
  echo "link.sh: the linker did not end within $limit s; again with $((2 * limit)) s" >&2
  limit=$((2 * limit))
done
