// The counters as a file, for node_exporter's textfile collector.
#pragma once

#include <string>
#include <string_view>

#include "common/error.h"

namespace jitc::observe {

// Readers find the old text or the new one, never a part: written beside it and renamed. Mode 0644: the collector is
// another user. The temporary name does not end in .prom, so that a collector leaves it alone, and is no other
// process's on any host or in any container. A symbolic link stays, what it leads to is replaced; what exists and is no
// regular file (a device, a pipe) is kRefused.
common::Result<void> write_metrics_file(const std::string& path, std::string_view text);

}  // namespace jitc::observe
