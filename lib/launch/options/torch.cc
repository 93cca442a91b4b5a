// What torchrun has and Paddle has not. launch/torchrun/translate.h says what it comes to.
#include "launch/options/group.h"

namespace fleet {
namespace {

void add_meeting_place(OptionGroup* group) {
  group->flag({.key = "standalone"}, "this node alone, on free ports (as without --nnodes)");
  group->text({.key = "master_addr", .value = "ADDR", .optional = true}, "",
              "node 0's address, with --master_port: as --master");
  group->integer({.key = "master_port", .value = "PORT", .optional = true}, 0, 0, 65535,
                 "of the rendezvous (29500); of a single node: MASTER_PORT");
  group->text({.key = "rdzv_endpoint", .value = "ADDR[:PORT]", .optional = true}, "",
              "where the rendezvous is (port: 29400)");
  group->text({.key = "rdzv_backend", .value = "NAME", .optional = true}, "",
              "c10d or static; etcd is not needed: the rendezvous is built in");
  group->text({.key = "rdzv_conf", .value = "KEY=VALUE,...", .optional = true}, "",
              "join_timeout, last_call_timeout, keep_alive_interval, is_host, ...");
}

void add_program(OptionGroup* group) {
  group->flag({.key = "module", .aliases = {"m"}}, "PROGRAM is a Python module: python3 -u -m");
  group->flag({.key = "no_python"}, "PROGRAM is executed as it is, whatever its name");
  group->flag({.key = "run_path"}, "PROGRAM is run by Python's runpy.run_path");
}

void add_output(OptionGroup* group) {
  group->text({.key = "log_line_prefix_template", .value = "TEXT", .optional = true}, "",
              "before each line of several ranks: ${role_name}, ${local_rank}, ${rank}, "
              "${hostname}");
  group->text({.key = "duplicate_stdout_filters", .value = "LIST", .optional = true}, "",
              "lines with one of these texts also go to filtered_stdout.log (',,': a comma)");
  group->text({.key = "duplicate_stderr_filters", .value = "LIST", .optional = true}, "",
              "the same for standard error, to filtered_stderr.log");
}

}  // namespace

OptionGroup torch_options() {
  OptionGroup group("as torchrun has them");
  group.choice({.key = "compat", .value = "LAUNCHER", .optional = true}, "fleetrun",
               {"fleetrun", "torchrun"},
               "whose defaults, logs and console (called torchrun: torchrun)");
  add_meeting_place(&group);
  group.text({.key = "role", .value = "NAME", .optional = true}, "default",
             "of this node's ranks: ROLE_NAME, ROLE_RANK, ROLE_WORLD_SIZE");
  add_program(&group);
  group.flag({.key = "virtual_local_rank"},
             "every rank has LOCAL_RANK=0 and sees one GPU, its own");
  group.choice({.key = "numa_binding", .value = "MODE", .optional = true}, "none",
               {"none", "node", "socket", "exclusive", "core-complex"},
               "ranks run on cores near their GPU: node, socket, exclusive, core-complex");
  group.text({.key = "signals_to_handle", .value = "LIST", .optional = true},
             "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "signals that stop the job");
  add_output(&group);
  return group;
}

}  // namespace fleet
