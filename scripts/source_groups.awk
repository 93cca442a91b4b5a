# Prints groups of source files that can be compiled as one, "FILE FILE...", of about SIZE files each:
#
#   awk -v size=8 -f scripts/source_groups.awk FILE...
#
# The files of a group share the time that their headers cost: scripts/check_tidy.sh reads each group
# as one source. No two of its files give a name of their own, in an unnamed namespace or by a macro, to different things, as
# far as lines that start with a declaration show it. A new file changes one group: each file has its place by its name.

function declared(line) {
  sub(/^\[\[[a-z_]+\]\] /, "", line)
  if (line ~ /^using .*::/ && line !~ /=/) return ""  # may be repeated
  if (line ~ /^template </) return ""
  if (line ~ /^(#define|struct|class|enum|enum class|using|namespace) [A-Za-z_0-9]+/) sub(/^(enum class|#?[a-z]+) /, "", line)
  else if (match(line, /^[A-Za-z_][A-Za-z_0-9:<>,&*() ]* [*&]?[A-Za-z_0-9]+( =|\(|\[|\{|;)/)) {
    line = substr(line, 1, RLENGTH)
    # The first name before a parenthesis, or the last.
    if (match(line, /[A-Za-z_0-9]+\(/)) line = substr(line, RSTART)
    else { sub(/( =|\[|\{|;)$/, "", line); sub(/.*[ *&]/, "", line) }
  } else if (match(line, /^[a-z_0-9]+\(/)) line = substr(line, 1, RLENGTH)  # its type is on the line before
  else return ""
  match(line, /^[A-Za-z_0-9]+/)
  return substr(line, 1, RLENGTH)
}

function hash(text,    value, i) {
  for (i = 1; i <= length(text); ++i) value = (value * 31 + ordinal[substr(text, i, 1)]) % 65521
  return value
}

function fits(group,    i) {
  if (members[group] >= 1.5 * size) return 0
  for (i = 1; i <= count; i += 2) if (((group, own[i]) in taken) && taken[group, own[i]] != own[i + 1]) return 0
  return 1
}

FNR == 1 { file[++files] = FILENAME; inside = 0 }
/^#include <linux\// { alone[files] }  # defines again what the C library's headers define
/^namespace \{/ { inside = 1 }
/^\}  \/\/ namespace$/ { inside = 0 }
!inside && /^const .*\) \{$/ { next }  # a function that others call
(inside || /^(#define|const|constexpr|static|using|inline|extern|thread_local) ?/) && (name = declared($0)) != "" {
  # An alias may be repeated, if it is the same.
  alias = $0 ~ /^(using|namespace) .*=/ ? $0 : FILENAME
  gsub(/ /, "", alias)
  names[files] = names[files] " " name " " alias
  # Further constants of the same line.
  for (rest = $0; match(rest, /, k[A-Z][A-Za-z0-9]* ?[={[]/); rest = substr(rest, RSTART + RLENGTH)) {
    name = substr(rest, RSTART + 2, RLENGTH - 3)
    sub(/[ ={[].*/, "", name)
    names[files] = names[files] " " name " " FILENAME
  }
}

END {
  for (i = 1; i < 128; ++i) ordinal[sprintf("%c", i)] = i
  groups = 1
  while (groups * 1.4 * size < files) groups *= 2
  for (f = 1; f <= files; ++f) {
    count = split(names[f], own, " ")
    base = file[f]
    sub(/.*\//, "", base)
    first = hash(base) % groups
    for (tries = 0; tries < groups && !fits((first + tries) % groups); ++tries) {}
    # Files that fit nowhere share further groups.
    g = (first + tries) % groups
    if (f in alone) g = "alone " f
    else if (tries == groups) for (g = groups; (g in members) && !fits(g); ++g) {}
    for (i = 1; i <= count; i += 2) taken[g, own[i]] = own[i + 1]
    ++members[g]
    list[g] = list[g] (list[g] == "" ? "" : " ") file[f]
  }
  for (g in list) print list[g] | "sort"
}
