#!/usr/bin/env bash
# Draws docs/images/session.svg, the terminal session in README.md, from real output: a rank is killed while two ranks train,
# and the job restarts; then a program fails. The picture counts the lines that it leaves out.
# Then docs/images/curves.svg, which fleetrun report draws of a whole training of Fashion-MNIST.
# Needs bash, awk and the package dataset-fashion-mnist; takes one to two minutes.
#
#   scripts/readme_picture.sh [BUILD_FOLDER]     default build/release
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

programs=$(realpath "${1:-build/release}/bin")
[ -x "$programs/fleetrun" ] || die "$programs/fleetrun is missing; build the targets fleetrun and fleet-worker"
picture=$PWD/docs/images/session.svg
folder=$(mktemp -d)
job=
trap '[ -z "$job" ] || kill "$job" 2>/dev/null || true; rm -rf "$folder"' EXIT
cp -r config "$folder"
cd "$folder" || exit
export PATH="$programs:$PATH" FLEET_RUNTIME_DIR="$folder/runtime"

# await WHAT COMMAND...: repeats the command until it succeeds, for at most one minute.
await() {
  local what=$1 tries=600
  shift
  until "$@" >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || die "$what did not happen within a minute; the session so far: $(cat session)"
    sleep 0.1
  done
}

# --- the session: "$ " marks a command, "# " an action in another terminal ---------------------------------------
options=(-q --nproc_per_node=2 --max_restart=1)
settings=(--set train.max_steps=200 --set train.fetch_every=50 --set checkpoint.every_steps=50)
{
  echo "$ fleetrun ${options[*]} config/fashion_mnist.json \\"
  echo "$     --set train.max_steps=200 --set train.fetch_every=50 \\"
  echo "$     --set checkpoint.every_steps=50"
} >session
fleetrun "${options[@]}" config/fashion_mnist.json "${settings[@]}" >>session 2>&1 &
job=$!
await "the checkpoint of step 100" test -d output/fashion_mnist/latest/checkpoints/step_00000100
rank=$(fleetrun status default | awk '/^  rank 1 /{print $4}')
echo "# kill -9 $rank, rank 1, in another terminal" >>session
kill -9 "$rank"
wait "$job" || die "the job failed: $(cat session)"
job=

cat >train.sh <<'TRAIN'
#!/bin/sh
sleep 1
if [ "$RANK" = 2 ]; then
  echo "cannot read /data/part-2" >&2
  exit 7
fi
sleep 60
TRAIN
chmod +x train.sh
{
  echo "$ "
  echo "$ fleetrun -q --nproc_per_node=4 ./train.sh"
} >>session
code=0
fleetrun -q --nproc_per_node=4 ./train.sh >>session 2>&1 || code=$?
{
  echo "$ echo \$?"
  echo "$code"
} >>session

# --- the picture ------------------------------------------------------------------------------------------------------
awk '
  # Leave out and count log lines that are the same for every job, and the log excerpt in the verdict.
  /^(INFO .*(training runs on|communicate through|output folder|Find )|worker_index|fleet-worker:|start:|speed:|trained after)/ { left_out(); next }
  / saved / && !/step_00000100$/ { left_out(); next }
  /last lines of its log log\/workerlog.1/ { quoted = 1 }
  quoted && /^  / { left_out(); next }
  { quoted = 0; show($0) }
  function left_out() { omitted++ }
  function omission() { if (omitted) rows[++n] = "dim\t... " omitted (omitted == 1 ? " line" : " lines"); omitted = 0 }
  function show(line,   kind) {
    omission()
    kind = line ~ /^\$ / ? "command" : line ~ /^# / ? "dim" : line ~ /^WARNING/ ? "warning" : line ~ /^ERROR/ ? "error" : \
           line ~ /resumed|restarted|^test/ ? "good" : "text"
    sub(/^\$ +$/, "", line)
    sub(/^\$     /, "      ", line)
    do {  # a terminal of 80 columns
      rows[++n] = kind "\t" substr(line, 1, 80)
      line = substr(line, 81)
    } while (line != "")
  }
  function escaped(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }
  END {
    omission()
    row = 19; top = 52; width = 80 * 8.43 + 40
    printf "<!-- Written by scripts/readme_picture.sh from a real session: do not edit. -->\n"
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\">\n", width, top + n * row + 8
    print "<style>text{white-space:pre;fill:#c9d1d9}.command{fill:#ffffff;font-weight:bold}.dim{fill:#7d8590}.warning{fill:#e3b341}.error{fill:#ff7b72}.good{fill:#56d364}</style>"
    printf "<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#0d1117\"/>\n"
    print "<circle cx=\"20\" cy=\"18\" r=\"6\" fill=\"#ff5f56\"/><circle cx=\"40\" cy=\"18\" r=\"6\" fill=\"#ffbd2e\"/><circle cx=\"60\" cy=\"18\" r=\"6\" fill=\"#27c93f\"/>"
    for (i = 1; i <= n; i++) {
      split(rows[i], part, "\t")
      printf "<text x=\"20\" y=\"%d\" class=\"%s\" xml:space=\"preserve\">%s</text>\n", top + (i - 1) * row, part[1], escaped(part[2])
    }
    print "</svg>"
  }' session >"$picture"
say "wrote docs/images/session.svg"

# --- the curves -------------------------------------------------------------------------------------------------------
fleetrun -q --nproc_per_node=2 config/fashion_mnist.json --set train.output=curves --set train.fetch_every=10 >curves.out 2>&1 ||
  die "the training failed: $(cat curves.out)"
fleetrun report curves --svg "$(dirname "$picture")/curves.svg"
