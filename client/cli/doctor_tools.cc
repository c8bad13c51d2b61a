// jitc doctor: what of MPI and PETSc a solver would be built and run with.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "client/cli/doctor.h"
#include "client/cli/program.h"

namespace jitc::cli {
namespace {

constexpr double kSeconds = 5;  // of a program that says its version

// Which MPI a text is about.
std::string implementation_of(const std::string& text) {
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower.find("open mpi") != lower.npos || lower.find("openmpi") != lower.npos ||
      lower.find("openrte") != lower.npos)
    return "Open MPI";
  if (lower.find("intel") != lower.npos) return "Intel MPI";
  if (lower.find("mpich") != lower.npos || lower.find("hydra") != lower.npos) return "MPICH";
  return "";
}

std::string said(const std::vector<std::string>& argv) {
  const auto ended = run_program(argv, {}, {}, kSeconds);
  return ended && ended->code == 0 ? ended->out : std::string();
}

// <jitc/mpi.hpp> of this installation; empty: the headers are not there.
std::string mpi_header() {
  std::error_code ignored;
  const auto prefix = std::filesystem::path(own_program()).parent_path().parent_path();
  for (const auto& path : {prefix / "include/jitc/mpi.hpp", std::filesystem::path("/usr/include/jitc/mpi.hpp")})
    if (std::filesystem::exists(path, ignored)) return path.string();
  return {};
}

}  // namespace

void examine_mpi(const Teller& tell) {
  tell.step("mpi.run");
  const std::string run = on_path("mpirun"), compiler = on_path("mpicc");
  const std::string run_text = run.empty() ? "" : said({run, "--version"});
  const std::string runs = implementation_of(run_text);
  if (run.empty())
    tell({"mpi.run", Verdict::kWarn, "no mpirun on the PATH", "load the site's MPI module, or install openmpi-bin"});
  else
    tell({"mpi.run", Verdict::kOk, run + ": " + run_text.substr(0, run_text.find('\n')), {}});
  tell.step("mpi.compiler");
  if (compiler.empty())
    return tell({"mpi.compiler", Verdict::kOk, "no mpicc on the PATH: only who builds a solver needs one", {}});
  const std::string line = said({compiler, "-show"});
  const std::string builds = implementation_of(line);
  const std::string found = compiler + ": " + (builds.empty() ? "of an MPI that is not known" : builds);
  if (!builds.empty() && !runs.empty() && builds != runs)
    tell({"mpi.compiler", Verdict::kWarn, found + ", but mpirun is of " + runs,
          "take both from one MPI: ranks of the other each run alone"});
  else
    tell({"mpi.compiler", Verdict::kOk, found, {}});
  tell.step("mpi.header");
  const std::string header = mpi_header();
  if (header.empty())
    tell({"mpi.header", Verdict::kOk, "jitc/mpi.hpp is not installed here: only who builds a solver needs it", {}});
  else
    tell({"mpi.header", Verdict::kOk, header + ", compiled by the solver with its own MPI", {}});
}

void examine_petsc(const Teller& tell) {
  tell.step("petsc");
  if (const char* directory = std::getenv("PETSC_DIR"); directory != nullptr && *directory != '\0') {
    const char* arch = std::getenv("PETSC_ARCH");
    const std::string path = std::string(directory) + (arch == nullptr ? "" : std::string("/") + arch);
    std::error_code ignored;
    const bool is_there = std::filesystem::exists(path + "/include", ignored);
    return tell({"petsc", is_there ? Verdict::kOk : Verdict::kWarn,
                 "PETSC_DIR and PETSC_ARCH say " + path + (is_there ? "" : ", where there is none"),
                 is_there ? "" : "correct PETSC_DIR and PETSC_ARCH"});
  }
  for (const char* name : {"PETSc", "petsc"}) {
    const std::string version = first_line({"pkg-config", "--modversion", name}, kSeconds);
    if (!version.empty()) return tell({"petsc", Verdict::kOk, "version " + version + ", as pkg-config says", {}});
  }
  tell({"petsc", Verdict::kOk, "none found (PETSC_DIR, pkg-config): jitc itself needs none", {}});
}

}  // namespace jitc::cli
