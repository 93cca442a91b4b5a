#!/usr/bin/env bash
# Follows the pages of docs/contributing on a throw-away copy of the sources: adds one of each kind, in the one copy.
#
#   tests/scripts/recipes_test.sh BUILD_DIR [all]      all: part 2 too, which compiles most of the control plane again
# The copy is an overlay over the source folder in a mount namespace of its own, so that paths and times stay and only new files
# are compiled. 77: this system does not allow that.
#
# Part 1 adds what costs new files, or a line in a list. The programs know it then, and a job trains with it.
# Part 2 adds messages, and options with a field: at most five edited files each. The compiler misses the case of a new message. It
# asks the compiler about one file at a time, so the copy compiles no groups then.
# Both build what changes of the libraries, and link each test with its own file only, or with its group (FLEET_GROUP_SOURCES).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$(realpath "${1:?usage: recipes_test.sh BUILD_DIR}")
root=$PWD

skip() { echo "SKIP: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }

if [ -z "${RECIPES_COPY:-}" ]; then
  case $build/ in "$root"/*) ;; *) skip "the build folder is not below the source folder" ;; esac
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  mkdir "$scratch/changes" "$scratch/work"
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(--map-root-user)
  overlay() { unshare --mount "${as_root[@]}" bash -c 'mount -t overlay overlay -o "$0" "$1" && shift && cd . && exec "$@"' "$@"; }
  options=lowerdir=$root,upperdir=$scratch/changes,workdir=$scratch/work
  overlay "$options" "$root" true 2>/dev/null || skip "no overlay of a folder in a mount namespace of its own"
  RECIPES_COPY=1 overlay "$options" "$root" bash "$root/tests/scripts/recipes_test.sh" "$build" "${2:-}"
  exit
fi

pages=docs/contributing
ninja=$(sed -n 's/^CMAKE_MAKE_PROGRAM:[^=]*=//p' "$build/CMakeCache.txt")
[ "$(basename "$ninja")" = ninja ] || skip "the build folder is not ninja's"
log=$(mktemp)
scratch=$(mktemp)
[ "${2:-}" != all ] || grep -q '^FLEET_GROUP_SOURCES:STRING=OFF$' "$build/CMakeCache.txt" ||
  "$(sed -n 's/^CMAKE_COMMAND:INTERNAL=//p' "$build/CMakeCache.txt")" -DFLEET_GROUP_SOURCES=OFF "$build" >"$log" 2>&1 ||
  { cat "$log"; fail "cmake on the copy"; }

# recipe TARGET FILE FILTER: build_and_test will build FILE of the test program TARGET, and run these tests.
tests=()
recipe() { tests+=("$1 $2 $3"); }
make() {
  "$ninja" -C "$build" "$@" >"$log" 2>&1 && return
  grep -E 'error|FAILED' -A5 "$log" | head -n 60
  fail "the build of the recipes"
}
# link_of TARGET FILE: the words that link it without its other tests.
link_of() {
  "$ninja" -C "$build" -t commands -s "bin/$1" | tail -n 1 | sed -e 's/^: && //' -e 's/ && :.*//' | tr -s ' ' '\n' |
    awk -v file="/$(basename "$2").o" '!/_(test|fuzz)\.cc\.o$/ || substr($0, length($0) - length(file) + 1) == file'
}
# build_and_test PROGRAM...: those programs too.
build_and_test() {
  local test target file filter inputs=("$@")
  make build.ninja  # new files
  for test in "${tests[@]}"; do
    read -r target file filter <<<"$test"
    link_of "$target" "$file" | grep "/$(basename "$file").o\$" >/dev/null ||
      grep -qsF "$file\"" "$build/$(dirname "$file")/CMakeFiles/$target.dir/Unity"/* || fail "$target has no $file"
    mapfile -t -O "${#inputs[@]}" inputs < <(link_of "$target" "$file" | grep -E '^[^/].*\.[ao]$')
  done
  mapfile -t inputs < <(printf '%s\n' "${inputs[@]}" | sort -u)
  make "${inputs[@]}"
  for test in "${tests[@]}"; do
    read -r target file filter <<<"$test"
    (cd "$build" && bash -c "$(link_of "$target" "$file" | sed "s#^bin/$target\$#bin/recipe#" | tr '\n' ' ')") >"$log" 2>&1 || { tail -n 20 "$log"; fail "$file does not link"; }
    if [ "$filter" = corpus ]; then
      "$build/bin/recipe" tests/fuzz/corpus recipe >"$log" 2>&1 || { tail -n 20 "$log"; fail "$file"; }
      echo "$file: $(grep -c '^recipe: ' "$log") inputs"
      continue
    fi
    "$build/bin/recipe" --gtest_filter="$filter" --gtest_brief=1 >"$log" 2>&1 || { tail -n 40 "$log"; fail "$file"; }
    grep -qE '^\[  PASSED  \] [1-9]' "$log" || { tail -n 20 "$log"; fail "$file: $filter is no test"; }
    echo "$target, $file: $(grep -oE '[0-9]+ tests?' <<<"$(grep PASSED "$log")") passed"
  done
  tests=()
}

# rows PAGE[#SECTION]: the rows of the tables of files, of one section or of the whole page.
rows() {
  awk -v section="${1#*#}" -v all="${1##*#*}" '/^## / { inside = index($0, "## " section) == 1 } (inside || all != "") && /^\| `/' "$pages/${1%%#*}.md"
}
# files PAGE[#SECTION]: the first file of each row.
files() { rows "$1" | sed -nE 's/^\| `([^`]+)`.*/\1/p'; }

# new_files PAGE OLD NEW: copies the files of the page's tables whose path has OLD, and which the page calls new or does not say to be
# changed, under the name NEW. Whatever the page does not list is missing then.
new_files() {
  local page=$1 old=$2 new=$3 path copy found=0
  while read -r path; do
    copy=${path//$old/$new}
    [ -e "$path" ] || fail "$pages/$page.md lists $path, which does not exist"
    [ ! -e "$copy" ] || continue
    sed -e "s/$old/$new/g" -e "s/$(camel "$old")/$(camel "$new")/g" "$path" >"$copy"
    found=$((found + 1))
  done < <(files "$page" | grep -E "(^|[/_])${old}[._]")
  [ "$found" -gt 0 ] || fail "$pages/$page.md lists no file of '$old'"
  echo "$page: $found new files for '$new'"
}
camel() { sed -E 's/(^|_)([a-z0-9])/\U\2/g' <<<"$1"; }

# code_blocks PAGE: writes each code block below a heading "## 1. Title: `PATH`" to that file. It must be each file of the page's table.
code_blocks() {
  local path
  while read -r path; do
    [ ! -e "$path" ] || fail "$pages/$1.md: its example $path exists"
  done < <(files "$1")
  awk '/^## .*: `[^`]+`$/ { path = $0; sub(/^[^`]*`/, "", path); sub(/`$/, "", path) }
       /^## / && !/: `[^`]+`$/ { path = "" }
       /^```cpp$/ && path != "" && !(path in done) { writing = 1; done[path] = 1; next }
       /^```$/ { writing = 0 }
       writing { print > path }' "$pages/$1.md"
  while read -r path; do
    [ -s "$path" ] || fail "$pages/$1.md lists $path, but has no code for it"
  done < <(files "$1")
  echo "$1: $(files "$1" | wc -l) new files of the page's text"
}

# edit PAGE[#SECTION] FILE PATTERN TEXT: adds TEXT behind the first line of FILE that matches PATTERN; "A ... B": the first line with B
# behind one with A. Fails if the page does not list the file.
declare -A edited
edit() {
  local page=$1 file=$2 from=${3%% ... *} pattern=${3##* ... }
  rows "$page" | grep -F "$(basename "$file")\`" >/dev/null || fail "$pages/$page does not list $file, which its recipe edits"
  TEXT=$4 FROM=$from PATTERN=$pattern awk '$0 ~ ENVIRON["FROM"] { behind = 1 } { print }
      behind && !done && $0 ~ ENVIRON["PATTERN"] { print ENVIRON["TEXT"]; done = 1 }
      END { exit !done }' "$file" >"$scratch" || fail "$file has no line '$3', where the recipe of $page adds to it"
  cat "$scratch" >"$file"
  [[ " ${edited[$page]:-} " == *" $file "* ]] || edited[$page]="${edited[$page]:-} $file"
}
# at_most COUNT PAGE[#SECTION]: its recipe edited at most so many files.
at_most() {
  local count
  count=$(wc -w <<<"${edited[$2]:-}")
  [ "$count" -le "$1" ] || fail "$2: $count edited files, more than $1:${edited[$2]}"
  echo "$2: $count edited files"
}

# --- Part 1 ---

code_blocks op
recipe ops_tests tests/engine/ops/softplus_test.cc 'Softplus*'
recipe ops_emulated_tests tests/engine/ops/softplus_test.cc 'Softplus*'

new_files optimizer lion recipe_rule
recipe optim_tests tests/engine/optim/recipe_rule_test.cc 'RecipeRule*'
recipe optim_emulated_tests tests/engine/optim/recipe_rule_test.cc 'RecipeRule*'

new_files pass fuse_relu_depthwise_conv recipe_pass
# Its switch: a field of our own, as the page says.
edit 'pass#A switch for users' proto/strategy.proto '^message BuildStrategy [{]' '  optional bool recipe_pass = 1999 [default = false, (own) = true];'
recipe passes_tests tests/engine/passes/recipe_pass_test.cc 'RecipePass*'

new_files strategy gradient_merge recipe_merge
edit strategy proto/strategy.proto '^message DistributedStrategy [{]' '  optional bool recipe_merge = 1998 [default = false, (own) = true];
  optional GradientMergeConfig recipe_merge_configs = 1997 [(own) = true];'
at_most 1 strategy
recipe strategy_tests tests/engine/strategy/recipe_merge_test.cc 'RecipeMerge*'

# The tests of these kinds are in a file of their module. A job below uses them.
new_files model lenet recipe_net
new_files task image_classification recipe_task
new_files source synthetic recipe
new_files source flip recipe_flip
# Its member of CropGeometry keeps its name.
sed -i 's/order = 20/order = 21/; s/p\.recipe_flip/p.flip/' lib/engine/data/augment_recipe_flip.cc

new_files dialect jax recipe
recipe launch_tests tests/control/launch/planning/dialects/recipe_test.cc 'RecipeDialect*'

code_blocks sub_command
recipe launch_tests tests/control/launch/tools/cores_test.cc 'CoresCommand*'

# Options and keys. A member of LaunchConfig, which half of the launcher includes, comes in part 2.
supervise=lib/control/launch/planning/options/supervise.cc
declaration='  group.number(paddle({.key = "recipe_option", .value = "SECONDS", .optional = true}), 0, 0, 1e6,
               "seconds of a recipe (default: off)");'
edit 'option#An option of the launcher' $supervise '^  OptionGroup group' "$declaration"
recipe daemon_tests tests/control/daemon/option_effects_test.cc 'OptionEffects*'
edit 'option#An option of another launcher' lib/control/launch/planning/compat/torchrun.cc '^  CompatGroup group' \
  '  group.ignored({"--recipe_flag"}, "", "it is a recipe");'
edit 'option#A key of a job file' lib/engine/train/job.cc '^Schema train_schema ... ^  Schema schema;' \
  '  schema.integer("recipe_key", 0, 0, kMany, "a recipe");'
edit 'option#A key of a job file' lib/engine/train/trainer_steps.cc '^TrainResult Trainer::train' \
  '  spdlog::info("the key of the recipe is {}", job_.train.integer("recipe_key"));'

new_files fuzzing nodes recipe
sed 's/FLEET_FUZZ(nodes)/FLEET_FUZZ(recipe)/' tests/fuzz/launch/nodes_fuzz.cc >tests/fuzz/launch/recipe_fuzz.cc  # the parser keeps its names
cp -r tests/fuzz/corpus/nodes tests/fuzz/corpus/recipe
recipe fuzz_corpus_tests tests/fuzz/launch/recipe_fuzz.cc corpus

build_and_test fleetrun fleet-worker

cat >"$log" <<'JOB'
{"task": "recipe_task", "model": {"name": "recipe_net"}, "data": {"source": "recipe", "batch_size": 4, "train": {"samples": 8}, "augment": {"recipe_flip": true}},
 "optimizer": {"name": "recipe_rule"}, "train": {"epochs": 1, "recipe_key": 3},
 "strategy": {"recipe_merge": true, "recipe_merge_configs": {"k_steps": 2}}}
JOB
folder=$(mktemp -d)
(cd "$folder" && "$build/bin/fleet-worker" "$log") >"$folder/console" 2>&1 || { tail -n 20 "$folder/console"; fail "a job of the new kinds"; }
said() { grep -q "$1" "$folder/console" || { cat "$folder/console"; fail "a job of the new kinds does not say '$1'"; }; }
said 'trained after step 2'
said 'recipe_merge: parameters are updated every 2 steps'
said 'the key of the recipe is 3'
rm -rf "$folder"
echo "a job with the new task, model, source, augmentation, optimizer, strategy and key trained"

fleetrun=$build/bin/fleetrun
"$fleetrun" --dry_run --dialect=recipe true >"$log" 2>&1 || { cat "$log"; fail "a job with the new dialect"; }
PADDLE_RECIPE_OPTION=5 "$fleetrun" --print_config true >"$log" 2>&1 || fail "fleetrun --print_config"
grep -q '^recipe_option = 5.*(environment PADDLE_RECIPE_OPTION)' "$log" || { cat "$log"; fail "the new option has no value"; }
"$fleetrun" --dry_run --recipe_flag true >"$log" 2>&1 || { cat "$log"; fail "the new option of torchrun is refused"; }
grep -q 'it is a recipe' "$log" || { cat "$log"; fail "no line names the new option of torchrun"; }
"$fleetrun" cores --list >"$log" 2>&1 || fail "fleetrun cores"
"$fleetrun" --help >"$log" 2>&1
grep -q '^  fleetrun cores ' "$log" || fail "fleetrun --help does not list the new sub-command"
"$fleetrun" --print_completion=bash >"$log" 2>&1
grep -qw cores "$log" || fail "the completion lacks the new sub-command"
echo "fleetrun knows the new dialect, options and sub-command"

# --- Part 2 ---

[ "${2:-}" = all ] || exit 0

proto=proto/control.proto
# message SECTION ENVELOPE: a message on that link.
message() {
  grep -q '^message Recipe ' $proto || sed -i 's/^package .*/&\nmessage Recipe { int32 number = 1; }/' $proto
  edit "$1" $proto "^message $2 ... oneof kind" '    Recipe recipe = 199;'
}
node_link='control_message#Between nodes and the rendezvous'
guardian_link='control_message#Between launcher and guardian'
command_link='control_message#From a command to a running fleetrun'
fleetd_link='control_message#Between clients and fleetd'
message "$node_link" NodeMessage
message "$guardian_link" GuardianCommand
message "$command_link" ControlRequest
message "$fleetd_link" ClientMessage
guardian_option='option#An option that reaches ranks'
edit "$guardian_option" $proto '^message GuardianSettings [{]' '  int32 recipe_ms = 199;'
# The precompiled header of the control plane contains control.pb.h.
mapfile -t precompiled < <("$ninja" -C "$build" -t targets all | sed -nE 's#^(.*/fleet_precompiled_control\.dir/.*\.gch): .*#\1#p')
make proto/gen/proto/control.pb.h "${precompiled[@]}"

objects=$("$ninja" -C "$build" -t targets all | sed -nE 's#^([^:]*\.cc\.o): .*#\1#p')
# case_of SECTION FILE SWITCH CASE: the compiler misses the case; then it is added.
case_of() {
  local object command
  object=$(awk -v wanted="$2.o" '{ path = $0; sub(/CMakeFiles\/[^\/]*\.dir\//, "", path) } path == wanted { print; exit }' <<<"$objects")
  command=$("$ninja" -C "$build" -t commands -s "$object" |
    sed -E 's# -MD -MT [^ ]+ -MF [^ ]+# #; s# -o [^ ]+ -c # -fsyntax-only -Werror=switch -c #')
  ! (cd "$build" && CCACHE_DISABLE=1 bash -c "$command") >"$log" 2>&1 || fail "the compiler does not miss the new message in $2"
  grep -q 'enumeration value .*kRecipe.* not handled' "$log" || { head -n 20 "$log"; fail "$2: another error than the missing case"; }
  edit "$1" "$2" "$3" "$4"
}
node=lib/control/node rendezvous=lib/control/rendezvous daemon=lib/control/daemon
case_of "$node_link" $rendezvous/job_running.cc 'switch .message.kind_case' \
  '    case wire::NodeMessage::kRecipe: return on_recipe(job, node_rank, message.recipe());'
edit "$node_link" $rendezvous/job_running.cc '^}  // namespace$' 'void Running::on_recipe(Job& job, int node_rank, const wire::Recipe& recipe) {
  on_signal(job, node_rank, recipe.number());
}'
edit "$node_link" $rendezvous/job_phases.h 'void on_signal' '  void on_recipe(Job& job, int node_rank, const wire::Recipe& recipe);'
edit "$node_link" $node/supervision.cc '^void Supervision::on_restart_command' '  send(envelope(&wire::NodeMessage::mutable_recipe));'
edit "$node_link" tests/control/rendezvous/job_verdict_test.cc '^using Job' 'TEST(JobState, Recipe_IsASignalForAll) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  wire::Recipe recipe;
  recipe.set_number(10);
  job.send(2, &wire::NodeMessage::mutable_recipe, recipe);
  ASSERT_EQ(job.events_for<SignalCommand>(1).size(), 1u);
  EXPECT_EQ(job.events_for<SignalCommand>(1)[0].signal(), 10);
}'
recipe rendezvous_tests tests/control/rendezvous/job_verdict_test.cc 'JobState.Recipe*'

case_of "$guardian_link" $node/guardian_loop.cc 'switch .command.kind_case' \
  '      case wire::GuardianCommand::kRecipe: return signal_ranks(command.recipe().number());'
edit "$guardian_link" $node/supervision.cc '^void Supervision::kill_requested' '  actions_.push_back(envelope(&wire::GuardianCommand::mutable_recipe));'
edit "$guardian_link" tests/control/node/processes/guardian_test.cc '^bool exists' 'TEST_F(GuardianTest, Recipe_SignalsTheRank) {
  spawn({script(0, "exec sleep 600")});
  expect_started();
  wire::GuardianCommand command;
  command.mutable_recipe()->set_number(SIGTERM);
  send(command);
  EXPECT_EQ(expect_ended().signal(), SIGTERM);
}'

case_of "$command_link" $node/agent.cc 'switch .request.kind_case' '      case wire::ControlRequest::kRecipe: return signal_ranks(request.recipe().number());'
edit "$command_link" $node/stack_report.cc '^int run_stacks' '  wire::ControlRequest recipe;
  recipe.mutable_recipe()->set_number(3);'
edit "$command_link" tests/control/node/processes/control_socket_test.cc '^wire::ControlRequest stacks_request ... ^}' 'TEST_F(ControlSocketTest, Recipe_GetsItsReply) {
  serve([](const wire::ControlRequest& request, const ControlSocket::Reply& reply) {
    wire::ControlReply answer;
    answer.mutable_stacks()->add_silent(request.recipe().number());
    reply(answer);
  });
  wire::ControlRequest request;
  request.mutable_recipe()->set_number(3);
  EXPECT_EQ(send_control_request(::getpid(), request, 60).stacks().silent(0), 3);
}'
recipe node_processes_tests tests/control/node/processes/control_socket_test.cc '*.Recipe*'

case_of "$fleetd_link" $daemon/client_session.cc '^void ClientSession::handle ... switch .message.kind_case' \
  '    case wire::ClientMessage::kRecipe: return on_recipe(message.recipe());'
edit "$fleetd_link" $daemon/client_session.cc '^namespace fleet [{]' 'void ClientSession::on_recipe(const wire::Recipe& recipe) { query(std::to_string(recipe.number())); }'
edit "$fleetd_link" $daemon/client_session.h 'void handle' '  void on_recipe(const wire::Recipe& recipe);'
edit "$fleetd_link" $daemon/job_commands.cc '^int attach' '  wire::ClientMessage recipe;
  recipe.mutable_recipe()->set_number(3);'
edit "$fleetd_link" tests/control/daemon/client_session_test.cc '^struct ClientSessionTest ... ^[}];' 'TEST_F(ClientSessionTest, Recipe_IsAQuery) {
  Client client(loop, *jobs);
  client.send([](wire::ClientMessage* message) { message->mutable_recipe()->set_number(3); });
  run_until([&] { return client.gone(); });
  ASSERT_EQ(client.events.size(), 1u);
  EXPECT_TRUE(client.events[0].has_jobs());
}'
recipe daemon_tests tests/control/daemon/client_session_test.cc '*.Recipe*'

# An option with a member of LaunchConfig, and one that the guardian acts on.
option='option#An option of the launcher' planning=lib/control/launch/planning
edit "$option" $planning/launch_config.h '  bool allow_skew' '  std::chrono::milliseconds recipe{0};'
edit "$option" $planning/launch_config.cc '  config.grace = ' '  config.recipe = read_seconds(settings, "recipe_option");'
edit "$option" lib/control/launch/starting/start_job.cc '  agent.grace = ' '  agent.grace += config.recipe;'
edit "$option" tests/control/launch/planning/launch_config_test.cc '^LaunchConfig config ... ^}' 'TEST(LaunchConfig, Recipe_HasItsMembers) {
  const LaunchConfig all = config({"--recipe_option=2"});
  EXPECT_EQ(all.recipe, milliseconds(2000));
  EXPECT_EQ(all.guardian.recipe_ms(), 2000);
}'
recipe launch_tests tests/control/launch/planning/launch_config_test.cc 'LaunchConfig.Recipe*'

edit "$guardian_option" $supervise '^  OptionGroup group' ''  # its declaration is there
edit "$guardian_option" $planning/launch_config.cc '  config.grace = ' \
  '  config.guardian.set_recipe_ms(static_cast<int>(read_seconds(settings, "recipe_option").count()));'
edit "$guardian_option" $node/guardian_loop.cc 'order_.watch.rank.pid' \
  '      if (spawn->settings().recipe_ms() > 0) ::kill(rank.pid, SIGKILL);'
edit "$guardian_option" tests/control/node/processes/guardian_test.cc '^bool exists' 'TEST_F(GuardianTest, RecipeOption_KillsTheRank) {
  wire::GuardianSettings settings;
  settings.set_recipe_ms(1);
  spawn({script(0, "exec sleep 600")}, settings);
  expect_started();
  EXPECT_EQ(expect_ended().signal(), SIGKILL);
}'
recipe node_processes_tests tests/control/node/processes/guardian_test.cc '*.Recipe*'

for section in "$node_link" "$guardian_link" "$command_link" "$fleetd_link" "$option" "$guardian_option"; do at_most 5 "$section"; done
build_and_test
rm -f "$log" "$scratch"
