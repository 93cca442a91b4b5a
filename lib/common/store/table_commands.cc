#include "store/table_commands.h"

namespace fleet {

CommandSyntax table_syntax() {
  CommandSyntax syntax = {
      .program = "fleetrun table",
      .words = "DIR",
      .about =
          "show, look up or export the sparse tables of a snapshot\n"
          "DIR is a snapshot that parameter servers have written, a folder with a\n"
          "manifest.json; or a checkpoint with one. Without options: the number of rows of each "
          "table.",
      .least = 1,
      .most = 1,
      .missing_word = "give a checkpoint with tables, or its folder tables"};
  syntax.options
      .text({.key = "table", .value = "NAME", .optional = true}, "",
            "one table; needed by --id and --export if the snapshot has several")
      .texts({.key = "id", .value = "ID", .optional = true, .repeats = true},
             "show the row of this id; may be repeated")
      .text({.key = "export", .aliases = {"o"}, .value = "FILE", .optional = true}, "",
            "write all rows into this file; '-': standard output")
      .choice({.key = "format", .value = "FORMAT"}, "auto", {"auto", "text", "npy"},
              "text: a line for each row, its id, a tab, and the values; npy: float32 "
              "[rows, dim], and the ids in FILE.ids.npy; auto: npy if FILE ends in .npy")
      .flag({.key = "check"}, "compare the checksums of all rows");
  return syntax;
}

}  // namespace fleet
