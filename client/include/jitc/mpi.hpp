// jitc over MPI, header-only C++17: compiled in the user's program with the user's MPI, so that one libjitc serves
// OpenMPI, MPICH and the others.
#ifndef JITC_MPI_HPP
#define JITC_MPI_HPP

#include <mpi.h>
#include <jitc/jitc.hpp>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>

namespace jitc {
// jitc over an MPI_Comm.
namespace mpi {

namespace detail {

static_assert(sizeof(MPI_Request) <= sizeof(jitc_pending), "an MPI_Request must fit into jitc_pending");

inline std::string error_string(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  return MPI_Error_string(code, text, &length) == MPI_SUCCESS ? std::string(text, static_cast<std::size_t>(length))
                                                              : "MPI error " + std::to_string(code);
}

inline void check(int code, const char* what) {
  if (code != MPI_SUCCESS) throw Error(JITC_USAGE, std::string(what) + ": " + error_string(code));
}

// What the functions of the table are called with.
struct State {
  MPI_Comm comm = MPI_COMM_NULL;
  bool is_for_main_thread = false;  // MPI below MPI_THREAD_SERIALIZED: it may be called by no other
};

inline const State& state_of(void* state) { return *static_cast<State*>(state); }
inline MPI_Comm comm_of(void* state) { return state_of(state).comm; }

// No code of MPI's. A rank on a wrong thread must not even tell the others, which find that it is missing: no function
// that jitc begins anything with calls MPI there.
inline constexpr int kWrongThreadCode = -1;
inline constexpr const char* kWrongThreadText =
    "jitc is used on a thread that did not initialise MPI: initialise it with MPI_THREAD_SERIALIZED or more";

inline bool is_wrong_thread(const State& state) {
  int is_main = 1;
  return state.is_for_main_thread && MPI_Is_thread_main(&is_main) == MPI_SUCCESS && !is_main;
}

inline int start(int code, MPI_Request request, jitc_pending* pending) {
  std::memcpy(pending, &request, sizeof request);
  return code;
}

inline int iallreduce_or(void* state, const std::uint64_t* send, std::uint64_t* receive, std::size_t count,
                         jitc_pending* pending) {
  if (is_wrong_thread(state_of(state))) return kWrongThreadCode;
  if (count > INT_MAX) return MPI_ERR_COUNT;
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Iallreduce(const_cast<std::uint64_t*>(send), receive, static_cast<int>(count), MPI_UINT64_T,
                                  MPI_BOR, comm_of(state), &request);
  return start(code, request, pending);
}

inline int ibcast(void* state, void* buffer, std::size_t bytes, int root, jitc_pending* pending) {
  if (is_wrong_thread(state_of(state))) return kWrongThreadCode;
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Ibcast(buffer, static_cast<int>(bytes), MPI_BYTE, root, comm_of(state), &request);
  return start(code, request, pending);
}

// Nobody else sends on the duplicate.
inline constexpr int kTag = 0;

inline int isend(void* state, const void* buffer, std::size_t bytes, int to, jitc_pending* pending) {
  if (is_wrong_thread(state_of(state))) return kWrongThreadCode;
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  MPI_Request request = MPI_REQUEST_NULL;
  const int code =
      MPI_Isend(const_cast<void*>(buffer), static_cast<int>(bytes), MPI_BYTE, to, kTag, comm_of(state), &request);
  return start(code, request, pending);
}

inline int irecv(void* state, void* buffer, std::size_t bytes, int from, jitc_pending* pending) {
  if (is_wrong_thread(state_of(state))) return kWrongThreadCode;
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Irecv(buffer, static_cast<int>(bytes), MPI_BYTE, from, kTag, comm_of(state), &request);
  return start(code, request, pending);
}

inline int iprobe(void* state, int* is_there) {
  if (is_wrong_thread(state_of(state))) return kWrongThreadCode;
  return MPI_Iprobe(MPI_ANY_SOURCE, kTag, comm_of(state), is_there, MPI_STATUS_IGNORE);
}

inline int test(void*, jitc_pending* pending, int* done) {
  MPI_Request request;
  std::memcpy(&request, pending, sizeof request);
  const int code = MPI_Test(&request, done, MPI_STATUS_IGNORE);
  std::memcpy(pending, &request, sizeof request);
  return code;
}

inline void error_text(void*, int code, char* text, std::size_t capacity) {
  const std::string full = code == kWrongThreadCode ? kWrongThreadText : error_string(code);
  if (capacity == 0) return;
  const std::size_t length = full.size() < capacity - 1 ? full.size() : capacity - 1;
  std::memcpy(text, full.data(), length);
  text[length] = 0;
}

inline void release(void* state) {
  const std::unique_ptr<State> own(static_cast<State*>(state));
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Comm_free(&own->comm);  // after MPI_Finalize there is nothing left to free
}

// Frees the communicator unless it has been taken out.
struct Duplicate {
  MPI_Comm comm = MPI_COMM_NULL;
  Duplicate() = default;
  Duplicate(const Duplicate&) = delete;
  Duplicate& operator=(const Duplicate&) = delete;
  ~Duplicate() {
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  }
};

// Bits, for their OR over all ranks.
enum Verdict { kFine = 0, kWrongThread = 1, kNoMemory = 2, kMpiFailed = 4 };

// jitc calls MPI only from the thread that calls jitc; below MPI_THREAD_SERIALIZED that must be the main one.
inline int verdict_of_this_rank(MPI_Comm comm, State* state, jitc_communicator& table) {
  int verdict = state ? kFine : kNoMemory;
  int level = MPI_THREAD_SINGLE;
  if (MPI_Query_thread(&level) != MPI_SUCCESS) verdict |= kMpiFailed;
  if (is_wrong_thread({comm, level < MPI_THREAD_SERIALIZED})) verdict |= kWrongThread;
  if (state) *state = {comm, level < MPI_THREAD_SERIALIZED};
  if (MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN) != MPI_SUCCESS) verdict |= kMpiFailed;
  if (MPI_Comm_rank(comm, &table.rank) != MPI_SUCCESS) verdict |= kMpiFailed;
  if (MPI_Comm_size(comm, &table.ranks) != MPI_SUCCESS) verdict |= kMpiFailed;
  return verdict;
}

// Collective: throws on all ranks when one has a verdict other than kFine.
inline void agree(int mine, MPI_Comm comm) {
  int all = kFine;
  check(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_BOR, comm), "MPI_Allreduce");
  if (all == kFine) return;
  const std::string where = mine ? "on this rank" : "on another rank";
  if (all & kWrongThread) throw Error(JITC_USAGE, where + " " + kWrongThreadText);
  if (all & kNoMemory) throw Error(JITC_USAGE, where + " there is no memory for jitc's communicator");
  throw Error(JITC_USAGE, where + " MPI refuses to tell about the communicator");
}

}  // namespace detail

// A communicator for jitc::Context: a duplicate of `comm`, so that jitc's messages never meet the caller's. Collective
// over `comm`. The caller's communicator and its error handler are left alone; on the duplicate errors are returned,
// not fatal. Throws jitc::Error (JITC_USAGE): MPI is not initialised or already finalised, `comm` is MPI_COMM_NULL or
// an intercommunicator; or, on all ranks, when on one a thread calls that the MPI's thread level does not allow. A
// later call of jitc from such a thread makes that rank's context broken (JITC_BROKEN); the others time out.
inline Communicator communicator(MPI_Comm comm) {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (!initialized || finalized)
    throw Error(JITC_USAGE, "MPI is not initialised: call MPI_Init before jitc::mpi::communicator");
  if (comm == MPI_COMM_NULL) throw Error(JITC_USAGE, "jitc::mpi::communicator was given MPI_COMM_NULL");

  int is_inter = 0;
  detail::check(MPI_Comm_test_inter(comm, &is_inter), "MPI_Comm_test_inter");
  if (is_inter) throw Error(JITC_USAGE, "jitc works within one group of ranks: an intercommunicator was given");

  // What may be wrong on this rank alone is said to all before anybody throws: nobody is left in a collective call.
  detail::Duplicate duplicate;
  detail::check(MPI_Comm_dup(comm, &duplicate.comm), "MPI_Comm_dup");
  std::unique_ptr<detail::State> state(new (std::nothrow) detail::State);
  jitc_communicator table = {};
  table.size = sizeof table;
  detail::agree(detail::verdict_of_this_rank(duplicate.comm, state.get(), table), duplicate.comm);

  duplicate.comm = MPI_COMM_NULL;
  table.state = state.release();
  table.iallreduce_or = &detail::iallreduce_or;
  table.ibcast = &detail::ibcast;
  table.test = &detail::test;
  table.error_text = &detail::error_text;
  table.release = &detail::release;
  table.isend = &detail::isend;
  table.irecv = &detail::irecv;
  table.iprobe = &detail::iprobe;
  return Communicator(table);
}

}  // namespace mpi
}  // namespace jitc

#endif  // JITC_MPI_HPP
