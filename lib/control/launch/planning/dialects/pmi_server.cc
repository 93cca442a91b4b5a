#include "launch/planning/dialects/pmi_server.h"

#include "base/text.h"

namespace fleet {
namespace {

// Limits that clients use for their buffers.
constexpr size_t kMaxName = 256, kMaxKey = 64, kMaxValue = 1024;
// Longest line; more bytes without a newline are not PMI.
constexpr size_t kMaxLine = 64 << 10;

// Parses "cmd=put kvsname=job key=a value=b". As in the clients' parser, a value ends at a blank.
std::map<std::string, std::string, std::less<>> words_of(std::string_view line) {
  std::map<std::string, std::string, std::less<>> words;
  while (!line.empty()) {
    const size_t end = line.find(' ');
    const std::string_view word = line.substr(0, end);
    if (const size_t equals = word.find('='); equals != std::string_view::npos) {
      words.emplace(word.substr(0, equals), word.substr(equals + 1));
    }
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + 1);
  }
  return words;
}

std::string text(const std::map<std::string, std::string, std::less<>>& words,
                 std::string_view name) {
  const auto found = words.find(name);
  return found == words.end() ? std::string() : found->second;
}

}  // namespace

PmiServer::PmiServer(Job job, Send send, Exchange exchange)
    : job_(std::move(job)),
      send_(std::move(send)),
      exchange_(std::move(exchange)),
      ranks_(static_cast<size_t>(job_.local_size)) {
  values_["PMI_process_mapping"] = process_mapping(job_.ranks_per_node);
}

std::string PmiServer::process_mapping(const std::vector<int>& ranks_per_node) {
  std::string mapping = "(vector";
  for (size_t first = 0; first < ranks_per_node.size();) {
    size_t end = first;
    while (end < ranks_per_node.size() && ranks_per_node[end] == ranks_per_node[first]) ++end;
    mapping += ",(" + std::to_string(first) + "," + std::to_string(end - first) + "," +
               std::to_string(ranks_per_node[first]) + ")";
    first = end;
  }
  mapping += ")";
  // Without the mapping, ranks treat all peers as remote, which is slower but correct.
  return mapping.size() < kMaxValue ? mapping : std::string();
}

void PmiServer::on_bytes(int local_rank, std::string_view bytes) {
  Rank& rank = ranks_.at(static_cast<size_t>(local_rank));
  rank.unread += bytes;
  size_t end = 0;
  while ((end = rank.unread.find('\n')) != std::string::npos) {
    const std::string line = rank.unread.substr(0, end);
    rank.unread.erase(0, end + 1);
    on_line(local_rank, line);
  }
  if (rank.unread.size() > kMaxLine) rank.unread.clear();
}

void PmiServer::on_line(int local_rank, std::string_view line) {
  Rank& rank = ranks_[static_cast<size_t>(local_rank)];
  if (rank.multi_line) {
    if (line == "endcmd") {
      rank.multi_line = false;
      reply(local_rank, "cmd=spawn_result rc=-1 msg=not_supported");
    }
    return;
  }
  if (line.starts_with("mcmd=")) {  // MPI_Comm_spawn
    rank.multi_line = true;
    return;
  }
  const Words words = words_of(line);
  handle(local_rank, text(words, "cmd"), words);
}

void PmiServer::handle(int local_rank, const std::string& command, const Words& words) {
  if (command == "init") {
    const bool ours = text(words, "pmi_version") == "1";
    reply(local_rank, std::string("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=") +
                          (ours ? "0" : "-1"));
  } else if (command == "get_maxes") {
    reply(local_rank, "cmd=maxes kvsname_max=" + std::to_string(kMaxName) + " keylen_max=" +
                          std::to_string(kMaxKey) + " vallen_max=" + std::to_string(kMaxValue));
  } else if (command == "get_appnum") {
    reply(local_rank, "cmd=appnum appnum=0");
  } else if (command == "get_my_kvsname") {
    reply(local_rank, "cmd=my_kvsname kvsname=" + job_.name);
  } else if (command == "get_universe_size") {
    reply(local_rank, "cmd=universe_size size=" + std::to_string(job_.size));
  } else if (command == "put") {
    put(local_rank, words);
  } else if (command == "get") {
    get(local_rank, words);
  } else if (command == "barrier_in") {
    enter_barrier(local_rank);
  } else if (command == "finalize") {
    reply(local_rank, "cmd=finalize_ack");
  } else if (command == "publish_name" || command == "unpublish_name" || command == "lookup_name") {
    const std::string verb = command.substr(0, command.find('_'));
    reply(local_rank, "cmd=" + verb + "_result info=not_supported rc=-1 msg=not_supported");
  } else if (command != "abort") {  // the rank exits at once, and its exit code is reported
    reply(local_rank, "cmd=" + command + "_result rc=-1 msg=unknown_command");
  }
}

void PmiServer::put(int local_rank, const Words& words) {
  const std::string key = text(words, "key"), value = text(words, "value");
  if (text(words, "kvsname") != job_.name) {
    return reply(local_rank, "cmd=put_result rc=-1 msg=unknown_kvsname");
  }
  if (key.empty() || key.size() >= kMaxKey || value.size() >= kMaxValue) {
    return reply(local_rank, "cmd=put_result rc=-1 msg=too_long");
  }
  values_[key] = value;  // ranks of this node need not wait for the barrier
  new_puts_ += key + "=" + value + "\n";
  reply(local_rank, "cmd=put_result rc=0 msg=success");
}

void PmiServer::get(int local_rank, const Words& words) {
  const auto found = values_.find(text(words, "key"));
  if (text(words, "kvsname") != job_.name || found == values_.end() || found->second.empty()) {
    return reply(local_rank, "cmd=get_result rc=-1 msg=key_not_found value=unknown");
  }
  reply(local_rank, "cmd=get_result rc=0 msg=success value=" + found->second);
}

void PmiServer::enter_barrier(int local_rank) {
  Rank& rank = ranks_[static_cast<size_t>(local_rank)];
  if (rank.at_barrier) return;
  rank.at_barrier = true;
  if (++at_barrier_ == job_.local_size) exchange_(round_, new_puts_);
}

void PmiServer::merge(const std::string& all_puts) {
  for (const std::string& line : split(all_puts, '\n')) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos) values_[line.substr(0, equals)] = line.substr(equals + 1);
  }
  new_puts_.clear();
  at_barrier_ = 0;
  ++round_;
  for (Rank& rank : ranks_) rank.at_barrier = false;
  for (int local_rank = 0; local_rank < job_.local_size; ++local_rank) {
    reply(local_rank, "cmd=barrier_out");
  }
}

}  // namespace fleet
