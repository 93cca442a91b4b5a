#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/child_process.h"
#include "base/descriptor_limit.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/message_stream.h"
#include "daemon/node_requests.h"
#include "daemon/protocol.h"
#include "daemon/remote_job.h"
#include "daemon/ssh_greeting.h"
#include "daemon/via.h"
#include "launch/planning/arguments.h"
#include "launch/planning/program.h"
#include "launch/planning/refuse.h"
#include "launch/starting/startup_messages.h"

namespace fleet {
namespace {

constexpr char kNotThere[] = "fleetrun was not found";

// An ssh process to one node.
struct SshProcess {
  pid_t pid = -1;
  UniqueFd connection;    // its standard input and output
  UniqueFd error_output;  // standard error, in memory
  std::string printed;    // by the node, if fleetrun did not start there
};

SshProcess start_ssh(const std::string& host, std::vector<std::string> words) {
  SshProcess ssh;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw_errno("cannot create a socket pair");
  }
  ssh.connection = UniqueFd(ends[0]);
  const UniqueFd theirs(ends[1]);
  ssh.error_output = UniqueFd(::memfd_create("ssh", MFD_CLOEXEC));
  if (!ssh.error_output) throw_errno("cannot store the messages of ssh");
  ChildProgram program;
  program.words = std::move(words);
  program.input = program.output = theirs.get();
  program.errors = ssh.error_output.get();
  program.own_group = true;
  ssh.pid = start_child(program);
  if (ssh.pid < 0 && errno == ENOENT) {
    refuse("ssh is not installed on this host", "--via=ssh", "install openssh-client");
  }
  if (ssh.pid < 0) throw_errno("cannot start ssh", host, Wanted::kProcess);
  return ssh;
}

std::string ssh_text_of(int memory) {
  std::string text(64 << 10, '\0');
  const ssize_t size = ::pread(memory, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

// The path of this program, else its name.
std::vector<std::string> remote_programs(const ViaConfig& config) {
  if (config.remote_fleetrun) return {*config.remote_fleetrun};
  return {own_path(), "fleetrun"};
}

}  // namespace

std::vector<std::string> ssh_command(const std::string& host,
                                     const std::vector<std::string>& options,
                                     const std::vector<std::string>& programs) {
  std::vector<std::string> command = {"ssh"};
  command.insert(command.end(), options.begin(), options.end());
  // BatchMode: no one can answer questions. ServerAlive*: notice a lost connection.
  // ControlMaster=no: use an existing master connection, but do not create one.
  for (const char* option : {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=2",
                             "ServerAliveCountMax=3", "ControlMaster=no", "ForwardX11=no"}) {
    command.insert(command.end(), {"-o", option});
  }
  std::vector<std::string> tried;
  for (const std::string& program : programs) tried.push_back(shell_word(program));
  const std::string script =
      "for f in " + join(tried, " ") + "; do command -v \"$f\" >/dev/null 2>&1 && echo " +
      shell_word(std::string(trim(kSshGreeting))) + " && exec \"$f\" over_stdio; done; echo " +
      shell_word(kNotThere) + " >&2; exit 127";
  // Run the script with sh, whatever the login shell is.
  command.insert(command.end(), {"-T", "--", host, "exec sh -c " + shell_word(script)});
  return command;
}

Error explain_ssh(const std::string& host, const std::string& error_output, bool connected,
                  const std::string& printed) {
  const std::string line = last_line(error_output);
  const std::string where = "ssh to " + host;
  if (connected) {
    return {ErrorCode::kPeerLost, "the connection broke" + (line.empty() ? "" : ": " + line), where,
            "its processes on that node will be stopped"};
  }
  if (line == kNotThere) {
    return {ErrorCode::kUsage, kNotThere, where,
            "install it on the node, or give its path with --remote_fleetrun"};
  }
  if (line.find("Permission denied") != std::string::npos) {
    return {ErrorCode::kPeerLost, line, where,
            "passwords are not supported: create a key that the node accepts (ssh-copy-id)"};
  }
  if (line.empty() && !last_line(printed).empty()) {
    return {ErrorCode::kPeerLost,
            "it printed '" + last_line(printed) + "' and did not start fleetrun", where,
            "look at the start files of the shell there, such as ~/.bashrc"};
  }
  return {ErrorCode::kPeerLost, line.empty() ? "it ended without a message" : line, where,
          "check that `ssh " + host + " true` works"};
}

ViaPlan plan_via_ssh(const LaunchRequest& request) {
  const LaunchConfig& config = request.config;
  const auto programs = remote_programs(config.via);
  ViaPlan plan = plan_of_requests(request, node_requests(request, client_context(config.security)),
                                  [](const NodeRequest& node) { return "ssh to " + node.name; });
  for (NodeStart& node : plan.nodes) {
    node.reached_by = ssh_command(node.name, config.via.options, programs);
  }
  return plan;
}

int start_via_ssh(const LaunchRequest& request) {
  const LaunchConfig& config = request.config;
  set_up_logging(config.logs.own_level(), "fleetrun");
  raise_descriptor_limit();  // a node costs two
  const std::vector<NodeRequest> requests = node_requests(request, client_context(config.security));
  const std::vector<std::string> programs = remote_programs(config.via);
  print_configuration(request);
  auto processes = std::make_shared<std::vector<SshProcess>>();
  std::vector<RemoteNode> nodes;
  for (size_t k = 0; k < requests.size(); ++k) {
    const std::string& host = requests[k].name;
    processes->push_back(start_ssh(host, ssh_command(host, config.via.options, programs)));
    RemoteNode& node = nodes.emplace_back();
    node.name = host;
    *node.initial_request.mutable_prepare() = requests[k].job;
    node.initial_request.mutable_prepare()->clear_user();  // ssh determines the user
    node.connect = [processes, k](EventLoop& loop, const auto& connected) {
      SshProcess& ssh = (*processes)[k];
      await_greeting(loop, std::move(ssh.connection),
                     [&ssh, connected](UniqueFd socket, const std::string& printed) {
                       if (socket) return connected(make_channel_from_fd(std::move(socket)));
                       ssh.printed = printed;
                       connected(nullptr);
                     });
    };
    node.explain = [processes, k, host](const grpc::Status& status, bool connected) {
      if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
        return other_version("ssh to " + host,
                             "install the same version there, or choose it with --remote_fleetrun");
      }
      const SshProcess& ssh = (*processes)[k];
      return explain_ssh(host, ssh_text_of(ssh.error_output.get()), connected, ssh.printed);
    };
  }
  RemoteJob::Options job_options = remote_job_options(config);
  job_options.node_prefix.clear();
  const int code = run_job_client(std::move(nodes), std::move(job_options)).exit_code;
  for (const SshProcess& ssh : *processes) ::kill(ssh.pid, SIGTERM);  // their jobs have ended
  for (const SshProcess& ssh : *processes) wait_for_child(ssh.pid);
  return code;
}

}  // namespace fleet
