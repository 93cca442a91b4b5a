// Includes all headers that a program needs to train with fleetrun: docs/how-to/own_trainer.md.
//
//   fleet::Worker worker = fleet::init_collective();
//   fleet::Model model("resnet50", {{"num_classes", 102}});
//   fleet::Loader loader = model.train_loader({{"source", "image_list"}, ...});
//   fleet::DistributedStrategy strategy;
//   strategy.set("amp", true);
//   fleet::distributed_optimizer(fleet::Momentum(0.01, 0.9), strategy).minimize(model.loss());
//   fleet::ProgramExecutor exe(worker, model);
//   loader.start_epoch(0);
//   while (const auto* batch = loader.next()) exe.run(*batch);
#pragma once

#include "api/distributed_strategy.h"
#include "api/executor.h"
#include "api/model.h"
#include "api/optimizer.h"
#include "api/parameter_server.h"
#include "api/worker.h"
#include "base/error.h"
#include "models/model.h"
