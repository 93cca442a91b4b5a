#!/usr/bin/env bash
# Generates docs/reference/options.md, job_keys.md and operations.md from the output of the built programs, and the lists of models,
# optimizers and schedules in models.md and optimizers.md.
#
#   scripts/reference_pages.sh [BUILD_FOLDER [FOLDER]]     default build/release docs/reference
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build=${1:-build/release}
folder=${2:-docs/reference}
bin=$build/bin
for program in fleetrun fleetrun-pages fleetd fleet-worker; do
  [ -x "$bin/$program" ] || die "$bin/$program is missing; build all targets of $build"
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

written_by='<!-- Written by scripts/reference_pages.sh from the programs: do not edit. -->'

# The man page as one tab-separated line for each option, command and paragraph:
#   section TITLE | command LINE | summary TEXT | about TEXT | option FLAGS VALUE DEFAULT ENVIRONMENT MEANING
entries() {
  "$bin/fleetrun-pages" man | sed -e 's/\\-/-/g' -e 's/^\\&//' -e 's/\\e/\\/g' | awk '
    function cut(start, end,    text) {  # removes the text between two marks from help
      from = index(help, start)
      if (!from) return ""
      text = substr(help, from + length(start))
      to = index(text, end)
      rest = to ? substr(text, to + length(end)) : ""
      if (to) text = substr(text, 1, to - 1)
      help = substr(help, 1, from - 1) rest
      return text
    }
    function option() {
      if (flags == "") return
      environment = cut(" Environment: ", "\001")
      sub(/\.$/, "", environment)
      initial = cut(" Default: ", "\001")
      sub(/\.$/, "", initial)
      gsub(/^"|"$/, "", initial)
      if (initial ~ /^[0-9]+\.0$/) sub(/\.0$/, "", initial)
      sub(/\.$/, "", help)
      if (help ~ / \(default:? [^)]*\)$/) {  # the help text itself states the default
        match(help, / \(default:? [^)]*\)$/)
        stated = substr(help, RSTART, RLENGTH)
        help = substr(help, 1, RSTART - 1)
        sub(/^ \(default:? /, "", stated)
        sub(/\)$/, "", stated)
        initial = stated
      }
      print "option\t" flags "\t" value "\t" initial "\t" environment "\t" help
      flags = ""
    }
    /^\.SH / { option(); place = substr($0, 5); next }
    /^\.SS fleetrun / { option(); print "command\t" substr($0, 5); about = 0; next }
    /^\.SS / { option(); place = "other"; next }
    place != "OPTIONS" && place != "COMMANDS" { next }
    /^\.TP/ { option(); head = 1; about = 0; next }
    head {
      head = 0
      value = ""
      if (match($0, / \\fI.*\\fR$/)) { value = substr($0, RSTART + 4, RLENGTH - 7); $0 = substr($0, 1, RSTART - 1) }
      gsub(/\\f[BR]/, "")
      flags = $0
      help = ""
      next
    }
    flags != "" { help = help (help == "" ? "" : " ") $0; next }
    /^\.PP/ { about = 1; next }
    place == "COMMANDS" { print (about ? "about\t" : "summary\t") $0 }
  '
  printf 'end\n'
}

# Table rows: the value follows its flags; literals are in code marks.
option_rows='
  function cell(text) { gsub(/\|/, "\\|", text); gsub(/</, "\\&lt;", text); gsub(/\*/, "\\*", text); return text }
  function code(text,    parts, n, i, out) {
    n = split(text, parts, ", ")
    for (i = 1; i <= n; ++i) out = out (i > 1 ? ", " : "") "`" parts[i] "`"
    gsub(/\|/, "\\|", out)
    return out
  }
  function row(fields) {
    first = code(fields[2])
    if (fields[3] != "") { value = fields[3]; gsub(/\|/, "\\|", value); first = first " `" value "`" }
    return "| " first " | " cell(fields[4]) " | " (fields[5] == "" ? "" : code(fields[5])) " | " cell(fields[6]) " |"
  }'

options_page() {
  entries >"$scratch/entries"
  "$bin/fleetrun" --help all >"$scratch/help"  # a file, because awk may stop before the end of a pipe
  cat <<END
$written_by
# Options

A flag overrides its environment variable, which overrides the default. In option names, \`-\` and \`_\` are equal:
\`--nproc-per-node=2\`. \`fleetrun --print_config\` prints each value and its origin. \`fleetrun --help all\`, \`fleetrun --help COMMAND\`
and \`man fleetrun\` show these lists in a terminal. [environment.md](environment.md) lists the variables without an option.

- [fleetrun](#fleetrun-options-program)
- [Options of other launchers](#options-of-other-launchers)
- [Commands](#commands): $(sed -n 's/^  fleetrun \([a-z]*\)  .*/`\1`/p' "$scratch/help" | paste -sd, | sed 's/,/, /g')
- [fleetd](#fleetd)
- [fleet-worker](#fleet-worker)

## fleetrun [options] PROGRAM

PROGRAM is a job file (\`.json\`), a Python script (\`.py\`) or any program.
END
  # The headings come from the help, the details from the man page.
  awk -F '\t' -v entries="$scratch/entries" "$option_rows"'
    BEGIN {
      while ((getline line <entries) > 0) {
        n = split(line, fields, "\t")
        if (fields[1] == "command") break
        if (fields[1] != "option") continue
        split(fields[2], all, ", ")
        for (i in all) rows[all[i]] = row(fields)
      }
    }
    /^options of other launchers/ { exit }
    /^[a-z].*:$/ {
      sub(/:$/, "")
      printf "\n### %s\n\n| option | default | environment | meaning |\n|---|---|---|---|\n", toupper(substr($0, 1, 1)) substr($0, 2)
    }
    /^  -/ {
      match($0, /--[a-z_]+/)
      flag = substr($0, RSTART, RLENGTH)
      if (flag in rows) { print rows[flag]; next }
      text = $0
      sub(/^ *(-[A-Za-z], )?--[a-z_]+ */, "", text)
      match($0, /^ *(-[A-Za-z], )?--[a-z_]+/)
      names = substr($0, RSTART, RLENGTH)
      sub(/^ */, "", names)
      value = ""
      if (match(text, /^[A-Z][A-Z:,.=]* +/)) { value = substr(text, 1, RLENGTH); sub(/ +$/, "", value); text = substr(text, RLENGTH + 1) }
      split("option\t" names "\t" value "\t\t\t" text, fields, "\t")
      print row(fields)
    }' "$scratch/help"
  cat <<END

## Options of other launchers

fleetrun translates these options, reports them as without effect, or refuses them and prints the line to use instead
([how-to/other_launchers.md](../how-to/other_launchers.md), [differences](../explanation/differences/other_launchers.md)).

END
  sed -n '/^options of other launchers/,/^[A-Z]/p' "$scratch/help" | awk '
    /^  [^ ].*: / { flush(); split($0, half, ": "); name = half[1]; sub(/^ */, "", name); words = substr($0, index($0, ": ") + 2); next }
    /^    / { sub(/^ */, ""); words = words " " $0 }
    /^[A-Z]/ { flush() }
    function flush(    parts, n, i, line) {
      if (name == "") { print "| launcher | options |\n|---|---|"; return }
      n = split(words, parts, " ")
      line = ""
      for (i = 1; i <= n; ++i) line = line (i > 1 ? ", " : "") "`" parts[i] "`"
      print "| " name " | " line " |"
    }'
  printf '\n## Commands\n'
  awk -F '\t' "$option_rows"'
    function close_command() {
      if (about != "") print "\n" about
      about = ""
    }
    { split("", fields); n = split($0, fields, "\t") }
    $1 == "command" { close_command(); commands = 1; table = 0; line = $2; gsub(/[][]/, "\\\\&", line); print "\n### " line; next }
    !commands { next }
    $1 == "summary" { text = $2; print "\n" toupper(substr(text, 1, 1)) substr(text, 2); next }
    $1 == "about" { about = about (about == "" ? "" : " ") $2; next }
    $1 == "option" {
      close_command()
      if (!table) print "\n| option | default | environment | meaning |\n|---|---|---|---|"
      table = 1
      print row(fields)
    }
    $1 == "end" { close_command() }' "$scratch/entries"
  printf '\n## fleetd\n\n```\n%s\n```\n' "$("$bin/fleetd" --help)"
  printf '\n## fleet-worker\n\n```\n%s\n```\n' "$("$bin/fleet-worker" --help)"
}

# One tab-separated line for each key of a job with these overrides: VARIANT KEY TYPE DEFAULT HELP.
keys() {  # keys SECTION VARIANT OVERRIDE...
  local section=$1 variant=$2 override
  shift 2
  local -a set=()
  for override in "$@"; do set+=(--set "$override"); done
  "$bin/fleet-worker" --print_keys "$scratch/job.json" "${set[@]}" | awk -v variant="$variant" -v section="$section" '
    index($0, section ".") == 1 || (section == "train" && index($0, "task: ") == 1) {
      key = substr($0, 1, index($0, ": ") - 1)
      rest = substr($0, length(key) + 3)
      if (required = index(rest, " (required). ")) {
        print variant "\t" key "\t" substr(rest, 1, required - 1) "\t\t" substr(rest, required + 13)
        next
      }
      type = substr(rest, 1, index(rest, " (default ") - 1)
      rest = substr(rest, length(type) + 11)
      initial = substr(rest, 1, index(rest, "). ") - 1)
      print variant "\t" key "\t" type "\t" initial "\t" substr(rest, length(initial) + 4)
    }'
}

# The default value of KEY.
default_of() {
  "$bin/fleet-worker" --print_config "$scratch/job.json" | sed -n "s/^$1 = \"\(.*\)\"  (default)$/\1/p"
}

# The names that KEY accepts, from the error message for an invalid one.
names_of() {
  "$bin/fleet-worker" --print_keys "$scratch/job.json" --set "$1=?" 2>&1 >/dev/null | sed -n 's/.*; known: //p' | tr -d ',' || true
}

key_rows='
  function cell(text) { gsub(/\|/, "\\|", text); gsub(/</, "\\&lt;", text); gsub(/\*/, "\\*", text); return text }
  function type_of(text,    words, n, i, out) {
    if (text ~ /^a string one of /) {
      sub(/^a string one of /, "", text)
      n = split(text, words, ", ")
      if (text ~ /^, /) { n = split(substr(text, 3), words, ", "); words[++n] = "\"\"" }
      for (i = 1; i <= n; ++i) out = out (i > 1 ? ", " : "") "`" words[i] "`"
      return out
    }
    if (text == "true or false") return "bool"
    sub(/^an? /, "", text)
    sub(/ from /, ", ", text)
    return text
  }
  function initial(text) { return text == "" ? "required" : "`" text "`" }
  function capital(text) { return toupper(substr(text, 1, 1)) substr(text, 2) }'

# A section: the names and their meaning, then the common keys, then keys of some names only.
section() {  # section NAME TITLE WHAT; reads lines of keys()
  awk -F '\t' -v initial_name="$(default_of "$1")" -v name_key="$1" -v title="$2" -v what="$3" "$key_rows"'
    !($1 in seen) { seen[$1] = 1; variants[++variant_count] = $1 }
    $2 == name_key { meaning[$1] = $5; name_meanings[$5] = 1; next }
    {
      line = $2 "\t" $3 "\t" $4 "\t" $5
      if (!(line in count)) lines[++line_count] = line
      count[line]++
      having[line] = having[line] (having[line] == "" ? "" : ", ") "`" $1 "`"
    }
    END {
      print "\n## " title
      if (variant_count > 1) {
        chosen = initial_name == "" ? "required" : "default `" initial_name "`"
        different = 0
        for (m in name_meanings) ++different
        if (different > 1) {
          printf "\n| `%s` (%s) | %s |\n|---|---|\n", name_key, chosen, what
          for (i = 1; i <= variant_count; ++i) print "| `" variants[i] "` | " capital(cell(meaning[variants[i]])) " |"
        } else {
          printf "\n`%s` (%s):", name_key, chosen
          for (i = 1; i <= variant_count; ++i) printf "%s `%s`", (i > 1 ? "," : ""), variants[i]
          print "."
        }
      }
      print "\n| key | type | default | meaning |\n|---|---|---|---|"
      for (i = 1; i <= line_count; ++i) {
        if (count[lines[i]] != variant_count) { some = 1; continue }
        split(lines[i], f, "\t")
        print "| `" f[1] "` | " type_of(f[2]) " | " initial(f[3]) " | " capital(cell(f[4])) " |"
      }
      if (!some) exit
      printf "\nKeys whose presence or default depends on `%s`:\n\n| key | with | type | default | meaning |\n|---|---|---|---|---|\n", name_key
      # Group the rows of a key at its first position.
      for (i = 1; i <= line_count; ++i) {
        split(lines[i], f, "\t")
        if (count[lines[i]] == variant_count || f[1] in done) continue
        done[f[1]] = 1
        for (j = i; j <= line_count; ++j) {
          split(lines[j], g, "\t")
          if (g[1] != f[1]) continue
          print "| `" g[1] "` | " (count[lines[j]] > 8 && count[lines[j]] > variant_count / 2 ? "all others" : having[lines[j]]) " | " type_of(g[2]) " | " initial(g[3]) " | " capital(cell(g[4])) " |"
        }
      }
    }'
}

job_keys_page() {
  local name
  printf '{"model": {"name": "lenet"}}\n' >"$scratch/job.json"
  cat <<END
$written_by
# Keys of a job file

This page lists the type, range, default and meaning of every key of a job file. Some keys depend on a choice, such as \`task\` or \`model.name\`.
\`fleet-worker --print_keys job.json\` prints the keys that this job file may have, and \`--print_config\` prints their values and origins.
\`--set key=value\` after the job file overrides a key. [job_file.md](job_file.md) describes the form of the file, and
[strategies.md](strategies.md) the keys below \`strategy.\`.

Sections: [model](#model), [data](#data), [optimizer](#optimizer), [learning_rate](#learning_rate), [train](#train), [checkpoint](#checkpoint),
[predict](#predict), [comm](#comm).
END
  for name in $(names_of model.name); do keys model "$name" "model.name=$name"; done | section model.name model network
  for name in $(names_of data.source); do keys data "$name" "data.source=$name"; done | section data.source data 'source of samples'
  for name in $(names_of optimizer.name); do keys optimizer "$name" "optimizer.name=$name"; done | section optimizer.name optimizer rule
  for name in $(names_of learning_rate.name); do keys learning_rate "$name" "learning_rate.name=$name"; done |
    section learning_rate.name learning_rate schedule
  for name in $(names_of task); do keys train "$name" "task=$name"; done | section task train task
  for name in checkpoint predict comm; do keys "$name" all | section none "$name" ''; done
}

operations_page() {
  cat <<END
$written_by
# Operations

These are the operations that a network of your own may append with \`Network::apply()\`
([own_trainer.md](../how-to/own_trainer.md#your-own-network-your-own-data)). It takes the type of the operation, its inputs in the order
below, and the attributes that differ from their defaults; it returns the first output:

\`\`\`cpp
x = network.apply("slice", {x}, {{"axis", int64_t{1}}, {"start", int64_t{0}}, {"end", int64_t{8}}});
\`\`\`

A wrong shape, an unknown attribute or an attribute of another type ends the job before it starts, and the message names the operation. A list of
integers is a \`std::vector<int64_t>\`, a text a \`std::string\`. \`fleet-worker --print_operations\` prints the rest of this page.

END
  "$bin/fleet-worker" --print_operations
}

# A table of the names of a section, each with its help unless WHAT is empty, and the keys that not every name has; names with the
# same keys share a row if WHAT is empty. Reads lines of keys().
names_table() {  # names_table SECTION WHAT
  awk -F '\t' -v section="$1" -v what="$2" "$key_rows"'
    !($1 in seen) { seen[$1] = 1; names[++n] = $1 }
    $2 == section ".name" { help[$1] = $5; next }
    { key = substr($2, length(section) + 2); count[key]++; entries[$1] = entries[$1] "\n" key " " ($4 ~ /^"|^\[|^false$/ ? "" : $4) }
    END {
      print what == "" ? "| `" section ".name` | keys |\n|---|---|" : "| `" section ".name` | " what " | keys besides the common ones |\n|---|---|---|"
      for (i = 1; i <= n; ++i) {
        m = split(substr(entries[names[i]], 2), all, "\n")
        own = common = ""
        for (k = 1; k <= m; ++k) {
          split(all[k], parts, " ")
          text = "`" parts[1] "`"
          if (count[parts[1]] == n) { common = common (common == "" ? "" : ", ") text; continue }
          if (what != "" && parts[2] != "") text = text " " (parts[2] ~ /\.0$/ ? substr(parts[2], 1, length(parts[2]) - 2) : parts[2])
          own = own (own == "" ? "" : ", ") text
        }
        if (what != "") { print "| `" names[i] "` | " cell(help[names[i]]) " | " own " |"; continue }
        if (!(own in row)) rows[++r] = own
        row[own] = row[own] (row[own] == "" ? "" : ", ") "`" names[i] "`"
      }
      if (what != "") exit
      print "| all | " common " |"
      for (i = 1; i <= r; ++i) print "| " row[rows[i]] " | " rows[i] " |"
    }'
}

# filled PAGE: the page, with what stands between its marks replaced by $scratch/NAME.table.
filled() {
  awk -v scratch="$scratch" '
    /^<!-- end of what is generated -->$/ { skipped = 0 }
    !skipped { print }
    /^<!-- generated: .* scripts\/reference_pages.sh -->$/ {
      file = scratch "/" $3 ".table"
      while ((getline line <file) > 0) print line
      close(file)
      skipped = 1
    }' "$1"
}

options_page >"$scratch/options.md"
job_keys_page >"$scratch/job_keys.md"
operations_page >"$scratch/operations.md"
for name in $(names_of model.name); do keys model "$name" "model.name=$name"; done | names_table model '' >"$scratch/models.table"
for name in $(names_of optimizer.name); do keys optimizer "$name" "optimizer.name=$name"; done | names_table optimizer rule >"$scratch/optimizers.table"
for name in $(names_of learning_rate.name); do keys learning_rate "$name" "learning_rate.name=$name"; done |
  names_table learning_rate rate >"$scratch/schedules.table"
filled docs/reference/models.md >"$scratch/models.md"
filled docs/reference/optimizers.md >"$scratch/optimizers.md"
mkdir -p "$folder"
cp "$scratch"/{options,job_keys,operations,models,optimizers}.md "$folder"
