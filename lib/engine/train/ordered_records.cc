#include "train/ordered_records.h"

#include <utility>

namespace fleet {

void OrderedRecords::add(int64_t sample, Record record) {
  waiting_.emplace(sample, std::move(record));
  for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_;
       first = waiting_.erase(first), ++next_) {
    const Record& ready = first->second;
    if (ready.why.empty()) {
      write_(*file_, next_, ready.name, ready.rows);
    } else {
      file_->add_failure(ready.name, ready.why);
    }
  }
}

}  // namespace fleet
