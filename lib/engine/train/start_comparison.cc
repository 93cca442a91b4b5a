#include "train/start_comparison.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace fleet {
namespace {

// Settings that may differ between machines, or that affect only the rank itself.
bool is_of_machine(const std::string& path) {
  static const std::vector<std::string> all = {"checkpoint.resume",
                                               "checkpoint.weights",
                                               "comm.timeout",
                                               "data.async",
                                               "data.cache_folder",
                                               "data.prefetch",
                                               "data.root",
                                               "data.test.file",
                                               "data.test.folder",
                                               "data.test.images",
                                               "data.test.labels",
                                               "data.test.list",
                                               "data.test.shards",
                                               "data.threads",
                                               "data.token_cache",
                                               "data.tokenizer",
                                               "data.train.file",
                                               "data.train.folder",
                                               "data.train.images",
                                               "data.train.labels",
                                               "data.train.list",
                                               "data.train.shards",
                                               "data.vocabulary_file",
                                               "strategy.conv_workspace_size_limit",
                                               "strategy.cudnn_exhaustive_search",
                                               "strategy.file",
                                               "train.check_nan_inf",
                                               "train.cuda_graph",
                                               "train.device",
                                               "train.fraction_of_gpu_memory_to_use",
                                               "train.name",
                                               "train.output"};
  return std::binary_search(all.begin(), all.end(), path);
}

std::string hex_of(uint64_t hash) {
  return hex({reinterpret_cast<const char*>(&hash), sizeof hash});
}

// Hashes the file that contains this code, a program or a library: two builds of one version
// differ.
std::string build_text() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&is_of_machine), &info) == 0) return FLEET_VERSION;
  static const uint64_t hash = hash_file(info.dli_fname).value_or(0);
  return std::string(FLEET_VERSION) + " (build " + hex_of(hash) + ")";
}

void add_split(const std::string& split, const data::Fingerprint* print,
               std::vector<ComparedItem>* items) {
  const auto add = [&](const std::string& key, const std::string& value) {
    items->push_back({"data." + split + "'s " + key, value, ""});
  };
  add("samples", std::to_string(print ? print->samples : 0));
  if (!print) return;
  if (print->tokenizer != 0) add("tokenizer (hash)", hex_of(print->tokenizer));
  add("classes", std::to_string(print->classes));
  add("labels (hash)", hex_of(print->labels));
  add("list of files (hash)", hex_of(print->files));
  add("first images (hash)", hex_of(print->images));
}

constexpr char kSame[] = "same";

std::string text_of(const std::vector<ComparedItem>& items) {
  std::string text;
  for (const ComparedItem& item : items) {
    text += item.key + "\t" + item.value + "\t" + item.origin + "\n";
  }
  return text;
}

std::string digest_of(const std::vector<ComparedItem>& items) {
  uint64_t one = 1, two = 2;
  for (const ComparedItem& item : items) {
    const std::string line = item.key + "\t" + item.value;
    one = hash_text(line, one);
    two = hash_text(line, two);
  }
  return hex_of(one) + hex_of(two);
}

using Content = std::map<std::string, ComparedItem>;

Content content_of(const std::string& text) {
  Content content;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find('\t'), second = line.rfind('\t');
    const std::string key = line.substr(0, first);
    content[key] = {key, line.substr(first + 1, second - first - 1), line.substr(second + 1)};
  }
  return content;
}

std::string value_in(const Content& content, const std::string& key) {
  const auto found = content.find(key);
  if (found == content.end()) return "nothing";
  const ComparedItem& item = found->second;
  return item.value + (item.origin.empty() ? "" : " (" + item.origin + ")");
}

// The first keys whose contents differ. Hashes mean nothing to a reader: they are listed only if
// nothing else differs.
std::string differences(const Content& odd, const Content& most) {
  constexpr int kShown = 5;
  std::string text;
  int count = 0;
  Content either = odd;
  either.insert(most.begin(), most.end());
  for (const bool hashes : {false, true}) {
    if (hashes && count > 0) break;
    for (const auto& [key, item] : either) {
      const auto a = odd.find(key), b = most.find(key);
      if (key.ends_with("(hash)") != hashes) continue;
      if (a != odd.end() && b != most.end() && a->second.value == b->second.value) continue;
      if (++count > kShown) continue;
      text += (text.empty() ? "" : ", ") + key + " is " + value_in(odd, key) + ", not " +
              value_in(most, key);
    }
  }
  if (count > kShown) text += ", and " + std::to_string(count - kShown) + " more";
  return text;
}

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr size_t kShown = 8;
  std::vector<std::string> numbers;
  for (const int rank : ranks) numbers.push_back(std::to_string(rank));
  return (ranks.size() == 1 ? "rank " : "ranks ") + join_first(numbers, kShown);
}

}  // namespace

std::vector<ComparedItem> compared_items_of_job(const Job& job, const std::string& backend) {
  std::vector<ComparedItem> items = {{"fleetrun's version", build_text(), ""},
                                     {"device", backend, ""}};
  std::istringstream lines(job.settings.print());  // "path = value  (origin)"
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find(" = "), origin = line.rfind("  (");
    FLEET_CHECK(equals != std::string::npos && origin != std::string::npos, "a setting: " + line);
    const std::string path = line.substr(0, equals);
    if (is_of_machine(path)) continue;
    items.push_back({path, line.substr(equals + 3, origin - equals - 3),
                     line.substr(origin + 3, line.size() - origin - 4)});
  }
  return items;
}

std::vector<ComparedItem> compared_items_of_data(const Job& job, const data::Fingerprint& train,
                                                 const data::Fingerprint* test) {
  std::vector<ComparedItem> items;
  add_split("train", &train, &items);
  add_split("test", test, &items);
  const std::string& weights = job.checkpoint.text("weights");
  if (!weights.empty()) {
    const auto hash = hash_file(weights);
    items.push_back(
        {"checkpoint.weights' content (hash)", hash ? hex_of(*hash) : "cannot be read", ""});
  }
  return items;
}

std::chrono::milliseconds timeout_of(const Job& job) {
  return std::chrono::milliseconds(static_cast<int64_t>(job.comm.number("timeout") * 1000));
}

StartComparison::StartComparison(const std::vector<ComparedItem>& items, const std::string& name,
                                 JobRank rank, Store& store, std::chrono::milliseconds timeout)
    : name_("same_start/" + name),
      rank_(rank),
      store_(store),
      timeout_(timeout),
      digest_(digest_of(items)) {
  if (store_.add(key("ranks with " + digest_), 1) == 1) {
    store_.set(key("content " + digest_), text_of(items));
  }
  store_.set(key("of " + std::to_string(rank_.rank)), digest_);
  if (store_.add(key("came"), 1) == rank_.world) store_.set(key("verdict"), judge());
}

// The last rank to arrive decides: "same", or the digest of the majority ("" for none), and the
// message.
std::string StartComparison::judge() {
  if (store_.add(key("ranks with " + digest_), 0) == rank_.world) return kSame;
  std::map<std::string, std::vector<int>> ranks;  // by digest
  std::vector<std::string> order;                 // first rank of each
  for (int rank = 0; rank < rank_.world; ++rank) {
    const std::string digest = store_.get(key("of " + std::to_string(rank)), timeout_);
    if (!ranks.contains(digest)) order.push_back(digest);
    ranks[digest].push_back(rank);
  }
  const auto fewer = [&](const std::string& a, const std::string& b) {
    return ranks[a].size() < ranks[b].size();
  };
  const std::string most = *std::max_element(order.begin(), order.end(), fewer);
  const auto content = [&](const std::string& digest) {
    return content_of(store_.get(key("content " + digest), timeout_));
  };
  const Content usual = content(most);
  std::string message;
  int shown = 0;
  for (const std::string& digest : order) {
    if (digest == most || ++shown > 3) continue;
    message += (message.empty() ? "" : "; ") + ranks_text(ranks[digest]) +
               (ranks[digest].size() == 1 ? " differs from " : " differ from ") +
               ranks_text(ranks[most]) + ": " + differences(content(digest), usual);
  }
  const bool clear = 2 * ranks[most].size() > static_cast<size_t>(rank_.world);
  return (clear ? most : "") + "\n" + message;
}

void StartComparison::wait() {
  std::string verdict;
  try {
    verdict = store_.get(key("verdict"), timeout_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    std::vector<int> missing;
    for (int rank = 0; rank < rank_.world; ++rank) {
      try {
        store_.get(key("of " + std::to_string(rank)), std::chrono::milliseconds(1));
      } catch (const Error&) {
        missing.push_back(rank);
      }
    }
    throw Error(ErrorCode::kTimeout, ranks_text(missing) + " did not reach the start of training",
                {}, "check their logs, or raise comm.timeout");
  }
  if (verdict == kSame) return;
  const size_t line = verdict.find('\n');
  const std::string most = verdict.substr(0, line);
  throw Error(most == digest_ ? ErrorCode::kPeerLost : ErrorCode::kUsage, verdict.substr(line + 1),
              {},
              "start all ranks with the same job file, overrides, data and version of fleetrun");
}

}  // namespace fleet
