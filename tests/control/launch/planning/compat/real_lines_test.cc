// Command lines as documents and repositories print them, with fleetrun in place of their launcher:
// each runs as it says, or is refused with a line that does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "launch/planning/arguments.h"

namespace fleet {
namespace {

struct RealLine {
  const char* source;
  const char* line;  // behind the launcher's own name
  // The line in fleetrun's options and the program; for a line that is refused, "corrected: "
  // and the command at the end of the message, or "refused" if it has none.
  const char* says;
  bool with_variables = true;  // false: --export is left out of it; accelerate_test.cc has it
};

// In the folder of the test.
struct RealLines : ::testing::TestWithParam<RealLine> {
  void SetUp() override {
    ::unsetenv("SLURM_JOB_ID");
    ::unsetenv("SLURM_STEP_NUM_NODES");
    ::setenv("LD_LIBRARY_PATH", "/opt/lib", 1);
    ::setenv("HF_HOME", folder.c_str(), 1);
    std::filesystem::create_directories(folder);
    std::filesystem::current_path(folder);
    std::ofstream("my_hostfile")
        << "# Open MPI's\naa slots=2\nbb slots=2 max_slots=4\ncc slots=2\n";
    std::ofstream("myhostfile") << "worker-1 slots=4\nworker-2 slots=4\n";
    std::ofstream("machinefile") << "host1:2\nhost2:2\n";
    std::filesystem::create_directories("accelerate_configs");
    std::ofstream("accelerate_configs/deepspeed_zero3.yaml")
        << "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n"
           "mixed_precision: bf16\nnum_machines: 1\nnum_processes: 4\n";
  }
  void TearDown() override {
    std::filesystem::current_path(before);
    std::filesystem::remove_all(folder);
    ::unsetenv("LD_LIBRARY_PATH");
    ::unsetenv("HF_HOME");
  }
  const std::string folder = ::testing::TempDir() + "real_lines";
  const std::filesystem::path before = std::filesystem::current_path();
};

std::string said(const std::vector<std::string>& words, bool with_variables = true) {
  const LaunchRequest request = parse_arguments(words);
  std::vector<std::string> all = given_flags(
      request, with_variables ? std::set<std::string>() : std::set<std::string>{"export"});
  all.insert(all.end(), request.program.begin(), request.program.end());
  return join(all, " ");
}

std::string said_or_corrected(const std::vector<std::string>& words, bool with_variables) {
  try {
    return said(words, with_variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    const std::string message = error.what();
    const size_t at = message.find("\ncorrected: ");
    return at == std::string::npos ? "refused" : message.substr(at + 1);
  }
}

TEST_P(RealLines, RunsOrIsCorrected) {
  const std::string got =
      said_or_corrected(shell_words(GetParam().line, "test"), GetParam().with_variables);
  EXPECT_EQ(got, GetParam().says) << GetParam().source << ": " << GetParam().line;
  if (!got.starts_with("corrected: ")) return;
  // The corrected line is one.
  const std::vector<std::string> words = shell_words(got, "test");
  const auto fleetrun = std::find(words.begin(), words.end(), "fleetrun");
  ASSERT_NE(fleetrun, words.end());
  EXPECT_NO_THROW(said({fleetrun + 1, words.end()})) << got;
}

constexpr RealLine kMpirun[] = {
    {"horovod docs/mpi.rst",
     "-np 4 -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH -mca pml ob1 "
     "-mca btl ^openib python train.py",
     "--nproc_per_node=4 --export=NCCL_DEBUG=INFO python train.py"},
    {"horovod docs/mpi.rst",
     "-np 16 -H server1:4,server2:4,server3:4,server4:4 -bind-to none -map-by slot "
     "-x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH -mca pml ob1 -mca btl ^openib python train.py",
     "--ips=server1:4,server2:4,server3:4,server4:4 --via=ssh "
     "--export=NCCL_DEBUG=INFO,LD_LIBRARY_PATH,PATH python train.py"},
    {"github.com/Tencent/PocketFlow/issues/301", "--allow-run-as-root -np 4 ./hello",
     "--nproc_per_node=4 ./hello"},
    {"github.com/uber/horovod/issues/288",
     "-np 8 -H 192.168.11.1:4,192.168.11.2:4 -x NCCL_IB_DISABLE=0 -x NCCL_SOCKET_IFNAME=ib0 "
     "--mca plm_rsh_args \"-p 50000\" python tf_cnn_benchmarks.py --model=resnet50",
     "--ips=192.168.11.1:4,192.168.11.2:4 --via=ssh --via_options=-p 50000 "
     "--export=NCCL_IB_DISABLE=0,NCCL_SOCKET_IFNAME=ib0 python tf_cnn_benchmarks.py "
     "--model=resnet50"},
    {"gist.github.com/zarzen, nccl-tests",
     "-np 8 -H 127.0.0.1:8 -bind-to none -map-by slot -x PATH -x NCCL_DEBUG=INFO "
     "-x NCCL_TREE_THRESHOLD=0 -x LD_LIBRARY_PATH=/opt/lib -mca btl ^openib "
     "-mca btl_tcp_if_exclude lo,docker0 all_reduce_perf -b 128K -e 128M -f 2",
     "--nproc_per_node=8 "
     "--export=NCCL_DEBUG=INFO,NCCL_TREE_THRESHOLD=0,LD_LIBRARY_PATH=/opt/lib all_reduce_perf "
     "-b 128K -e 128M -f 2"},
    {"pastebin.com/HCeRuZS7",
     "-np 2 -H 192.168.31.7:1,192.168.31.5:1 -bind-to none -map-by slot -x NCCL_DEBUG=INFO "
     "-mca pml ob1 -mca btl ^openib -x NCCL_SOCKET_IFNAME=^lo,docker0,wlo1 "
     "-mca btl_tcp_if_exclude lo,docker0,wlo1 run.sh",
     "--ips=192.168.31.7:1,192.168.31.5:1 --via=ssh "
     "--export=[\"NCCL_DEBUG=INFO\",\"NCCL_SOCKET_IFNAME=^lo,docker0,wlo1\"] run.sh"},
    {"Open MPI mpirun(1)", "-hostfile my_hostfile -np 6 ./a.out",
     "--ips=aa:2,bb:2,cc:2 --via=ssh ./a.out"},
    {"Open MPI mpirun(1)", "-hostfile my_hostfile -np 3 ./a.out",
     "--ips=aa:2,bb:1 --via=ssh ./a.out"},
    {"Open MPI mpirun(1)", "-H aa,aa,bb ./a.out", "--ips=aa:2,bb:1 --via=ssh ./a.out"},
    {"Open MPI mpirun(1)", "-H aa,bb -npernode 2 ./a.out",
     "--ips=aa,bb --nproc_per_node=2 --via=ssh ./a.out"},
    {"Open MPI mpirun(1)", "--map-by ppr:8:node --bind-to core --host aa,bb ./a.out",
     "--ips=aa,bb --nproc_per_node=8 --via=ssh ./a.out"},
    {"Open MPI mpirun(1)", "-np 4 --timeout 60 ./a.out",
     "corrected: timeout 60 fleetrun --nproc_per_node=4 ./a.out"},
    {"MPICH user's guide", "-f machinefile -n 4 ./a.out",
     "--ips=host1:2,host2:2 --via=ssh ./a.out"},
    {"MPICH Hydra wiki", "-hosts h1,h2 -n 4 -genv OMP_PLACES cores ./a.out",
     "--ips=h1,h2 --nproc_per_node=2 --via=ssh --export=OMP_PLACES=cores ./a.out"},
    {"Intel MPI developer guide", "-n 4 -ppn 2 -hosts node1,node2 ./testc",
     "--ips=node1,node2 --nproc_per_node=2 --via=ssh ./testc"},
};
INSTANTIATE_TEST_SUITE_P(Mpirun, RealLines, ::testing::ValuesIn(kMpirun));

constexpr RealLine kHorovodrun[] = {
    {"horovod README", "-np 4 -H localhost:4 python train.py",
     "--nproc_per_node=4 python train.py"},
    {"horovod README", "-np 16 -H server1:4,server2:4,server3:4,server4:4 python train.py",
     "--ips=server1:4,server2:4,server3:4,server4:4 --via=ssh python train.py"},
    {"horovod docs/running.rst", "-np 6 --hostfile my_hostfile python train.py",
     "--ips=aa:2,bb:2,cc:2 --via=ssh python train.py"},
    {"horovod docs/running.rst", "--gloo -np 2 python train.py",
     "--nproc_per_node=2 --dialect=paddle,torch,horovod python train.py"},
    {"horovod docs/elastic.rst",
     "-np 8 --min-np 4 --max-np 12 --host-discovery-script discover_hosts.sh python train.py",
     "refused"},
    {"horovod docs/autotune.rst",
     "-np 4 --autotune --autotune-log-file /tmp/autotune_log.csv python train.py",
     "--nproc_per_node=4 --dialect=paddle,torch,horovod "
     "--export=HOROVOD_AUTOTUNE=1,HOROVOD_AUTOTUNE_LOG=/tmp/autotune_log.csv python train.py"},
    {"horovod docs/tensor-fusion.rst",
     "-np 4 --fusion-threshold-mb 32 --cycle-time-ms 3.5 python train.py",
     "--nproc_per_node=4 --dialect=paddle,torch,horovod "
     "--export=HOROVOD_FUSION_THRESHOLD=33554432,HOROVOD_CYCLE_TIME=3.5 python train.py"},
    {"horovod docs/docker.rst", "-np 8 -H host1:4,host2:4 -p 12345 python keras_mnist_advanced.py",
     "--ips=host1:4,host2:4 --via=ssh --via_options=-p 12345 python keras_mnist_advanced.py"},
};
INSTANTIATE_TEST_SUITE_P(Horovodrun, RealLines, ::testing::ValuesIn(kHorovodrun));

constexpr RealLine kSrun[] = {
    {"Slurm srun(1)", "-n4 prog1", "--nproc_per_node=4 prog1"},
    {"Slurm quick start", "-N3 -l /bin/hostname",
     "corrected: srun --ntasks-per-node=1 --nodes=3 fleetrun /bin/hostname"},
    {"a protein folding repository",
     "-N1 -n1 -c7 --gpus-per-task=1 --gpu-bind=closest python -m pytest -vv -s tests",
     "--nproc_per_node=1 --nnodes=1 python -m pytest -vv -s tests"},
    {"a molecular dynamics log",
     "--nodes=1 --ntasks-per-node=16 --cpus-per-task=1 namd2 nofield4.namd",
     "--nproc_per_node=16 --nnodes=1 namd2 nofield4.namd"},
    {"a course of parallel programming", "-n 3 -p batch ./a.out 100 in out",
     "corrected: srun --ntasks-per-node=1 --partition=batch fleetrun --nproc_per_node=3 ./a.out "
     "100 "
     "in out"},
    {"PyTorch on Slurm, many",
     "--nodes=2 --ntasks=8 --gres=gpu:4 --cpu-bind=none --mpi=pmix python train.py --epochs 3",
     "corrected: srun --ntasks-per-node=1 --nodes=2 --gres=gpu:4 fleetrun --nproc_per_node=4 "
     "python "
     "train.py --epochs 3"},
    {"Slurm srun(1)", "--ntasks=2 --export=ALL,OMP_NUM_THREADS=4 --label ./a.out",
     "--nproc_per_node=2 --export=OMP_NUM_THREADS=4 ./a.out"},
};
INSTANTIATE_TEST_SUITE_P(Srun, RealLines, ::testing::ValuesIn(kSrun));

constexpr RealLine kDeepSpeed[] = {
    {"deepspeed.ai/getting-started",
     "--hostfile=myhostfile client_entry.py --deepspeed --deepspeed_config ds_config.json",
     "--ips=worker-1:4,worker-2:4 --via=ssh client_entry.py --deepspeed --deepspeed_config "
     "ds_config.json"},
    {"deepspeed.ai/getting-started", "--hostfile=myhostfile --num_nodes=1 client_entry.py",
     "--ips=worker-1:4 --via=ssh client_entry.py"},
    {"deepspeed.ai/getting-started", "--hostfile=myhostfile --exclude=worker-2 client_entry.py",
     "--ips=worker-1:4 --via=ssh client_entry.py"},
    {"deepspeed.ai/getting-started", "--include=\"worker-2:0,1\" client_entry.py",
     "--ips=worker-2 --gpus=0,1 --via=ssh --export=[\"CUDA_VISIBLE_DEVICES=0,1\"] "
     "client_entry.py"},
    {"Hugging Face Transformers, deepspeed.md",
     "--include localhost:1 examples/pytorch/translation/run_translation.py",
     "--gpus=1 --export=CUDA_VISIBLE_DEVICES=1 examples/pytorch/translation/run_translation.py"},
    {"Hugging Face Transformers, trainer.md", "--num_gpus 2 trainer-program.py",
     "--nproc_per_node=2 trainer-program.py"},
    {"DeepSpeedExamples", "--num_gpus=8 --bind_cores_to_rank train.py --deepspeed",
     "--nproc_per_node=8 train.py --deepspeed"},
};
INSTANTIATE_TEST_SUITE_P(DeepSpeed, RealLines, ::testing::ValuesIn(kDeepSpeed));

constexpr RealLine kAccelerate[] = {
    {"Accelerate basic_tutorials/launch.md",
     "--multi_gpu --mixed_precision=fp16 --num_processes=2 script.py --lr 1",
     "--nproc_per_node=2 script.py --lr 1", false},
    {"a repository of translations", "--multi_gpu --num_processes 2 --num_machines 1 translate.py",
     "--nproc_per_node=2 --nnodes=1 translate.py", false},
    {"a repository of robots",
     "--multi_gpu --num_processes 2 --main_process_port 29501 gr00t/rl/train_agent_trl.py "
     "+exp=wbmanip",
     "--nproc_per_node=2 --master_port=29501 gr00t/rl/train_agent_trl.py +exp=wbmanip", false},
    {"Accelerate examples, slurm/submit_multinode.sh",
     "--num_processes 8 --num_machines 2 --main_process_ip 10.0.0.1 "
     "--main_process_port 29500 --machine_rank 0 complete_nlp_example.py",
     "--nproc_per_node=4 --master=10.0.0.1:29500 --nnodes=2 --rank=0 complete_nlp_example.py",
     false},
    {"Accelerate usage_guides/deepspeed.md",
     "--use_deepspeed --deepspeed_config_file ds.json --num_processes 4 train.py",
     "--nproc_per_node=4 train.py", false},
    {"a repository of preference training",
     "--config_file accelerate_configs/deepspeed_zero3.yaml --num_processes 8 scripts/run_sft.py "
     "training_configs/sft.yaml",
     "--nproc_per_node=8 --nnodes=1 scripts/run_sft.py training_configs/sft.yaml", false},
    {"Accelerate package_reference/cli.md", "--cpu --num_cpu_threads_per_process 4 train.py",
     "--nproc_per_node=1 train.py", false},
};
INSTANTIATE_TEST_SUITE_P(Accelerate, RealLines, ::testing::ValuesIn(kAccelerate));

constexpr RealLine kPaddle[] = {
    {"FleetX documents", "--gpus=0,1,2,3,4,5,6,7 train_fleet_static_communication_topology.py",
     "--gpus=0,1,2,3,4,5,6,7 train_fleet_static_communication_topology.py"},
    {"collective training practice",
     "--ips=\"10.0.0.1, 10.0.0.2\" --gpus=0,1,2,3,4,5,6,7 example_collective.py",
     "--ips=10.0.0.1,10.0.0.2 --gpus=0,1,2,3,4,5,6,7 example_collective.py"},
    {"PaddleRec, graph models",
     "--log_dir ../../fleet_logs --worker_num 4 --server_num 4 dist_cpu_train.py --config ..",
     "--log_dir=../../fleet_logs --server_num=4 --worker_num=4 dist_cpu_train.py --config .."},
    {"Paddle's own tests",
     "--devices 0,1 --job_id distributedstrategy dist_fleet_distributedstrategy.py",
     "--gpus=0,1 --job_id=distributedstrategy dist_fleet_distributedstrategy.py"},
    {"PaddleNLP", "--log_dir=./mylog --selected_gpus=0,1 train.py --model x",
     "--gpus=0,1 --log_dir=./mylog train.py --model x"},
    {"Paddle 3 documents, launch",
     "--master=10.10.1.1:49178 --nnodes=2 --rank=0 --log_level=debug --log_overwrite True "
     "--enable_gpu_log False train.py",
     "--master=10.10.1.1:49178 --nnodes=2 --rank=0 --log_overwrite=true --log_level=DEBUG "
     "train.py"},
    {"Paddle 3 documents, launch", "--xpus=0,1,2,3 --nproc_per_node=4 train.py", "refused"},
    {"Paddle 3 documents, auto tuner", "--gpus=0,1 --auto_tuner_json=tuner.json train.py",
     "refused"},
    {"Paddle 2.1 documents, heterogeneous",
     "--server_num=2 --worker_num=2 --heter_worker_num=2 train.py", "refused"},
};
INSTANTIATE_TEST_SUITE_P(Paddle, RealLines, ::testing::ValuesIn(kPaddle));

}  // namespace
}  // namespace fleet
