// LiveReports as people and programs see them: fleetrun top and pages. Pure.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

struct LiveViewOptions {
  std::string sort = "rank";  // one of live_sort_keys()
  int columns = 80;           // no line is longer
  int rows = 0;               // lines of the frame; 0: as many as it needs
  bool colors = false;
  bool by_node = false;  // a line with sums for each node, in place of its ranks
  int first = 0;         // the first of the sorted ranks (or nodes) that is shown
  bool help = false;     // the keys in place of the ranks
  std::string note;      // a last line; "": none
};

// What --sort takes: a column, whose largest value then comes first; ranks and nodes ascend.
const std::vector<std::string>& live_sort_keys();

// A key of the keyboard that sorts by a column.
struct LiveKey {
  char letter;
  std::string sort, title;
};

struct LiveFrame {
  std::vector<std::string> lines;
  std::vector<LiveKey> keys;  // shown columns
  int first = 0, shown = 0;   // the ranks (or nodes) in it, as its rows allow

  std::string text() const;
};

// A frame: the job, its bottleneck, a line for each rank or node, and their sums. Columns that no
// rank knows are left out; so are, in a narrow frame, the least important ones, but not the one
// that it is sorted by. The slowest rank has a "*".
LiveFrame live_frame(const LiveReport& report, const LiveViewOptions& options);

// A line below a frame: the keys of its columns, with that of the sort key in brackets.
std::string live_key_line(const LiveFrame& frame, const LiveViewOptions& options);

// Turns what is typed into a change of the view. Takes one byte at a time: those of an arrow key
// may arrive apart. Not thread-safe.
class LiveKeyboard {
 public:
  enum class Act { kNone, kRedraw, kEnd };
  // `frame`: the one on the screen, which begins at `view->first`. Keys of columns that it does not
  // have do nothing.
  Act press(char byte, const LiveFrame& frame, LiveViewOptions* view);

 private:
  std::string sequence_;  // an escape sequence that has begun
};

// For programs: one line of JSON; unknown values are null. `now`: seconds since 1970.
std::string live_json(const LiveReport& report, const std::string& sort, double now);

}  // namespace fleet
