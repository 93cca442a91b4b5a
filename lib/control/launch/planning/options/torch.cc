// torchrun's options that Paddle lacks. launch/planning/torchrun/translate.h maps them to settings.
#include "launch/planning/options.h"

namespace fleet {
namespace {

void add_rendezvous_options(OptionGroup* group) {
  group->flag({.key = "standalone"}, "run on this node alone, on free ports (as without --nnodes)");
  group->text({.key = "master_addr", .value = "ADDR", .optional = true}, "",
              "address of node 0; with --master_port the same as --master");
  group->integer({.key = "master_port", .value = "PORT", .optional = true}, 0, 0, 65535,
                 "rendezvous port; on a single node, the ranks' MASTER_PORT (default: 29500)");
  group->text({.key = "local_addr", .value = "ADDR", .optional = true}, "",
              "this node's address; one that is not this host's: the ranks' MASTER_ADDR, on the "
              "node of a c10d rendezvous");
  group->text({.key = "rdzv_endpoint", .value = "ADDR[:PORT]", .optional = true}, "",
              "rendezvous address (default port: 29400)");
  group->text({.key = "rdzv_backend", .value = "NAME", .optional = true}, "",
              "c10d or static; the rendezvous is built in, so etcd is not needed");
  group->text(
      {.key = "rdzv_conf", .value = "KEY=VALUE,...", .optional = true}, "",
      "rendezvous settings: join_timeout, last_call_timeout, keep_alive_interval, is_host, ...");
}

void add_program(OptionGroup* group) {
  group->flag({.key = "module", .aliases = {"m"}}, "run PROGRAM as a Python module: python3 -u -m");
  group->flag({.key = "no_python"}, "execute PROGRAM directly, whatever its name");
  group->flag({.key = "run_path"}, "run PROGRAM with Python's runpy.run_path");
}

void add_output(OptionGroup* group) {
  group->text(
      {.key = "log_line_prefix_template", .value = "TEXT", .optional = true}, "",
      "prefix of each line if several ranks are shown: ${role_name}, ${local_rank}, ${rank}, "
      "${hostname}");
  group->text(
      {.key = "duplicate_stdout_filters", .value = "LIST", .optional = true}, "",
      "also write lines that contain one of these texts to filtered_stdout.log (',,' is a comma)");
  group->text({.key = "duplicate_stderr_filters", .value = "LIST", .optional = true}, "",
              "the same for standard error, in filtered_stderr.log");
}

}  // namespace

OptionGroup torch_options() {
  OptionGroup group("torchrun compatibility");
  group.choice({.key = "compat", .value = "LAUNCHER", .optional = true}, "fleetrun",
               {"fleetrun", "torchrun"},
               "launcher whose defaults, logs and console output to use (default: fleetrun; "
               "torchrun if called as torchrun)");
  add_rendezvous_options(&group);
  group.text(
      {.key = "role", .value = "NAME", .optional = true}, "default",
      "role of this node's ranks, for ROLE_NAME, ROLE_RANK, ROLE_WORLD_SIZE (default: default)");
  add_program(&group);
  group.flag({.key = "virtual_local_rank"}, "give every rank LOCAL_RANK=0 and only its own GPU");
  group.choice({.key = "numa_binding", .value = "MODE", .optional = true}, "none",
               {"none", "node", "socket", "exclusive", "core-complex"},
               "bind ranks to cores near their GPU (default: none)");
  group.text({.key = "signals_to_handle", .value = "LIST", .optional = true},
             "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
             "signals that stop the job (default: SIGTERM,SIGINT,SIGHUP,SIGQUIT)");
  add_output(&group);
  return group;
}

}  // namespace fleet
