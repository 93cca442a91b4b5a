// gRPC's credentials for a Security. Internal to grpc_setup.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "rendezvous/security.h"

namespace fleet {

std::shared_ptr<grpc::ServerCredentials> server_credentials(const Security& security);
std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const Security& security);

}  // namespace fleet
