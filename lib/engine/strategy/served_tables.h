// Tables whose rows parameter servers hold: a step reads only the rows of its batch, as a feed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/program.h"

namespace fleet {

// A table to take out of the Program.
struct TableRequest {
  std::string name;  // of Network::table()
  int64_t dim = 0;   // as the job gives it; 0: the model's
};

// A table of a Program whose rows are elsewhere.
struct ServedTable {
  std::string name;
  int64_t dim = 0;
  int64_t most = 0;         // rows of a batch at most: its number of ids
  std::string column;       // the feed with the ids, int64; -1: none
  VarId places = kNoVar;    // feed, int64, as many as ids: the row of each in `rows`; -1: none
  VarId rows = kNoVar;      // feed, float32 [most, dim]
  VarId gradient = kNoVar;  // of `rows`; kNoVar before the backward pass
};

// Replaces the parameter of each of these tables by a feed of rows, and its ids by places among
// these, in training and evaluation. Call it once, before the backward pass. kUsage naming the key
// of a table that the model does not have, or of a dim that is not the model's; kUnsupported if the
// ids are not those of the data, or something else reads the table.
void serve_tables(Program& program, const std::vector<TableRequest>& tables);

// The tables that serve_tables() has taken out, by name.
std::vector<ServedTable> served_tables(const Program& program);

}  // namespace fleet
