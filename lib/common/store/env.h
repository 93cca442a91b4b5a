// The environment variables with which the launcher tells a rank its job and its job's Store.
#pragma once

namespace fleet {

inline constexpr char kEnvStoreAddress[] = "FLEET_STORE_ADDRESS";  // Assignment::store_address
// A file that only the job's user can read: the Security of the Store (security_from_text()).
inline constexpr char kEnvCredentials[] = "FLEET_CREDENTIALS";
inline constexpr char kEnvJobId[] = "FLEET_JOB_ID";
inline constexpr char kEnvGeneration[] = "FLEET_GENERATION";  // from 1
// Of a trainer that takes the place of a lost one (docs/how-to/parameter_servers.md): how often its
// rank was replaced in this generation, from 1; and the steps that the lost process had done.
inline constexpr char kEnvReplacement[] = "FLEET_REPLACEMENT";
inline constexpr char kEnvReplacedStep[] = "FLEET_REPLACED_STEP";
inline constexpr char kEnvRank[] = "PADDLE_TRAINER_ID";
inline constexpr char kEnvRun[] = "FLEET_RUN";  // equal in all generations of a job: World::run
// A rank's log level if its own options do not set one: the launcher's --log_level.
inline constexpr char kEnvLogLevel[] = "FLEET_LOG_LEVEL";

}  // namespace fleet
