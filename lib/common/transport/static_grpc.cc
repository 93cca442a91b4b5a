// gRPC's built-in configuration for a program that links gRPC statically. gRPC's own list adds xDS,
// lookup services and balancers: 3 MB of code that nothing here can reach. This file replaces
// grpc_plugin_registry.cc of gRPC 1.51, in the same order. It is only for programs that may depend
// on glibc alone (scripts/cmake/static_program.cmake); elsewhere the shared library has its own.
namespace grpc_core {

class CoreConfiguration {
 public:
  class Builder;
};
using Builder = CoreConfiguration::Builder;

void RegisterTCPConnectHandshaker(Builder* builder);
void RegisterPickFirstLbPolicy(Builder* builder);
void BuildClientChannelConfiguration(Builder* builder);
void SecurityRegisterHandshakerFactories(Builder* builder);
void RegisterClientAuthorityFilter(Builder* builder);
void RegisterChannelIdleFilters(Builder* builder);
void RegisterHttpFilters(Builder* builder);
void RegisterDeadlineFilter(Builder* builder);
void RegisterMessageSizeFilter(Builder* builder);
void RegisterServiceConfigChannelArgFilter(Builder* builder);
void RegisterResourceQuota(Builder* builder);
void RegisterAresDnsResolver(Builder* builder);
void RegisterNativeDnsResolver(Builder* builder);
void RegisterSockaddrResolver(Builder* builder);
void RegisterSecurityFilters(Builder* builder);
void RegisterBuiltins(Builder* builder);

}  // namespace grpc_core

namespace grpc_event_engine::experimental {

void RegisterEventEngineChannelArgPreconditioning(grpc_core::Builder* builder);

}  // namespace grpc_event_engine::experimental

namespace grpc_core {

void BuildCoreConfiguration(Builder* builder);  // gRPC calls it once

void BuildCoreConfiguration(Builder* builder) {
  grpc_event_engine::experimental::RegisterEventEngineChannelArgPreconditioning(builder);
  RegisterTCPConnectHandshaker(builder);
  RegisterPickFirstLbPolicy(builder);
  BuildClientChannelConfiguration(builder);
  SecurityRegisterHandshakerFactories(builder);
  RegisterClientAuthorityFilter(builder);
  RegisterChannelIdleFilters(builder);
  RegisterHttpFilters(builder);
  RegisterDeadlineFilter(builder);
  RegisterMessageSizeFilter(builder);
  RegisterServiceConfigChannelArgFilter(builder);
  RegisterResourceQuota(builder);
  RegisterAresDnsResolver(builder);
  RegisterNativeDnsResolver(builder);
  RegisterSockaddrResolver(builder);
  RegisterSecurityFilters(builder);
  RegisterBuiltins(builder);  // last, as in gRPC
}

}  // namespace grpc_core
