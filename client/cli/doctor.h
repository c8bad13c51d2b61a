// What `jitc doctor` looks at: each area tells findings, on a child process of its own (client/cli/bounded.h).
#pragma once

#include <string>
#include <vector>

#include "client/cli/bounded.h"
#include "client/cli/context.h"
#include "client/cli/doctor_text.h"
#include "common/error.h"
#include "common/store_trust.h"

namespace jitc::cli {

// An area's seconds where JITC_TIMEOUT says for ever.
inline constexpr double kLookSeconds = 30;
// How many times an area may wait so long that asks a daemon several questions.
inline constexpr double kServiceQuestions = 8;

// A finding of this error.
Finding failed(std::string check, const common::Error& error);

// Without settings.
void examine_ulimits(const Teller& tell);
void examine_memory_files(const Teller& tell);
void examine_mpi(const Teller& tell);
void examine_petsc(const Teller& tell);
void examine_settings(const SettingFlags& flags, const Teller& tell);
// With them.
void examine_store(const Context& context, const common::StoreLayer& layer, const Teller& tell);
void examine_layer(const common::StoreLayer& layer, const Teller& tell);
void examine_stage_directory(const std::string& path, const Teller& tell);
void examine_runtime_directory(const Context& context, const Teller& tell);
void examine_daemon(const Context& context, const Teller& tell);
// By a daemon that is started for this, in a directory of its own, and ended.
void examine_service(const Context& context, const Teller& tell);

// ---- what areas have in common --------------------------------------------------------------------------------------

// Limits as a daemon tells them ("limits" of hello), which says what each comes from.
void tell_limits(const std::string& hello_json, const Teller& tell);
// This very program, for questions to a daemon.
std::string own_program();
// The file system of an existing path in words ("nfs", "ext4", "0x1234"); empty: it cannot be asked.
std::string file_system_name(const std::string& path);
// Is it shared with other nodes?
bool is_shared_file_system(const std::string& name);

}  // namespace jitc::cli
