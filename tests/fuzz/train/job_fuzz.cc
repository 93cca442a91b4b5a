// A job file, with --set.
#include "base/text.h"
#include "tests/fuzz/fuzz.h"
#include "train/job.h"

// JSON, and behind a zero byte lines of --set.
FLEET_FUZZ(job) {
  const size_t end = bytes.find('\0');
  fleet::ConfigTree tree = fleet::ConfigTree::from_json(bytes.substr(0, end), "fuzz.json");
  if (end != bytes.npos) {
    fleet::apply_overrides(tree, fleet::split(bytes.substr(end + 1), '\n'));
  }
  fleet::make_job(tree).settings.print();
}
