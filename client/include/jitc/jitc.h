/* jitc: compiled C for MPI solvers that generate code while they run. The C interface of libjitc.
 *
 * Rules that hold everywhere
 * - Status: functions that can fail return JITC_OK (0) or a jitc_kind; with an `error` argument that is not NULL they
 *   also hand out a jitc_error, which the caller frees with jitc_error_free. On success *error is set to NULL.
 * - Text is UTF-8. Text that the library returns belongs to the object it came from and lives as long as that object.
 *   Text that the caller gives is copied before the function returns.
 * - Structures begin with `size`, which the caller sets to sizeof of that structure: so old programs go on working with
 *   newer libraries. Fields left 0 or NULL mean the default.
 * - Collective: functions marked so must be called by every rank of the context's communicator, in the same order. They
 *   return the same status, and the same error, on every rank. Wrong arguments on one rank are JITC_USAGE on all; only
 *   without a context a rank cannot take part.
 * - A context is used by one thread at a time. Modules may be used and released by any thread.
 * - The library calls the communicator's functions only from the thread that called jitc_compile, and never forks
 *   once it has connected to the daemon.
 */
#ifndef JITC_JITC_H
#define JITC_JITC_H

#include <stddef.h>
#include <stdint.h>

/* Marks what the shared library exports. */
#if defined(__GNUC__)
#define JITC_API __attribute__((visibility("default")))
#else
#define JITC_API
#endif

/* C programs may pass any number as an enumeration; a fixed type makes that defined in C++ as well. */
#ifdef __cplusplus
#define JITC_AS_INT : int
#else
#define JITC_AS_INT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* What functions return: how a call ended. docs/troubleshooting.md has an entry for each. */
typedef enum jitc_kind JITC_AS_INT {
  JITC_OK = 0,
  JITC_INVALID_SOURCE = 1,    /* the source does not compile; jitc_error_text shows the diagnostics */
  JITC_REFUSED = 2,           /* policy: a flag, an include, another user's daemon */
  JITC_OUT_OF_MEMORY = 3,     /* the compiler needs more than the budget */
  JITC_TIMED_OUT = 4,         /* silence for longer than the setting `timeout` */
  JITC_CANCELLED = 5,         /* somebody ended the compile */
  JITC_COMPILER_CRASHED = 6,  /* the compiler died; jitc_error_json has its log */
  JITC_STORE_FULL = 7,        /* no room for artifacts */
  JITC_STORE_UNAVAILABLE = 8, /* the store cannot be read or written */
  JITC_DRAINING = 9,          /* the daemon is shutting down */
  JITC_VERSION_SKEW = 10,     /* library and daemon do not understand each other */
  JITC_UNREACHABLE = 11,      /* no daemon */
  JITC_USAGE = 12,            /* a wrong argument or setting */
  JITC_DIVERGENT = 13,        /* the ranks asked for different things */
  JITC_BROKEN = 14,           /* the context cannot be used any more: an earlier call timed out */
  JITC_NOT_LOADED = 15,       /* a rank could not load the module */
  JITC_CORRUPT = 16,          /* an artifact does not verify */
  JITC_INTERNAL = 17,         /* a bug */
  JITC_MISCOMPILED = 18       /* the module does not compute what the problem says: the error names the entry */
} jitc_kind;

/* What went wrong, to which thing, and what to do. */
typedef struct jitc_error jitc_error;

/* Its kind, never JITC_OK. */
JITC_API jitc_kind jitc_error_kind(const jitc_error* error);
JITC_API const char* jitc_error_kind_name(const jitc_error* error); /* "OUT_OF_MEMORY" */
JITC_API const char* jitc_error_message(const jitc_error* error);   /* what happened */
JITC_API const char* jitc_error_thing(const jitc_error* error);     /* to which thing; may be "" */
JITC_API const char* jitc_error_remedy(const jitc_error* error);    /* what to do; may be "" */
/* All of it in many lines, for people: diagnostics with line, column and caret included. */
JITC_API const char* jitc_error_text(const jitc_error* error);
/* All of it as JSON: kind, message, thing, remedy, diagnostics, log, needed_bytes, budget_bytes, tries, rungs,
 * retry_after_seconds (0: not said), capsule (a file on the first rank's node for 'jitc replay', or ""). */
JITC_API const char* jitc_error_json(const jitc_error* error);
/* The ranks on which it happened, ascending; NULL with *count 0 when it is not of particular ranks. */
JITC_API const int* jitc_error_ranks(const jitc_error* error, size_t* count);
/* 1: the context is broken from now on (see jitc_compile), 0: it can be used again. */
JITC_API int jitc_error_is_broken(const jitc_error* error);
JITC_API void jitc_error_free(jitc_error* error); /* NULL is allowed */

/* ---- the communicator -------------------------------------------------------------------------------------------- */

/* A pending operation: the implementation's request handle, by value. */
typedef struct jitc_pending {
  uint64_t opaque[2]; /* the implementation's own */
} jitc_pending;

/* What the library needs of MPI. <jitc/mpi.hpp> fills it from an MPI_Comm, so that libjitc itself is linked to no MPI.
 * The operations are non-blocking, are started in the same order on all ranks, and complete through `test`. Functions
 * return 0 or an error code of the implementation; an error makes the context broken.
 *
 * Buffers stay valid until `test` says done; after a time-out they stay valid for ever, on purpose: the operation may
 * still write into them. */
typedef struct jitc_communicator {
  size_t size; /* sizeof of this structure */
  void* state; /* first argument of the functions */
  int rank;    /* 0 .. ranks-1; rank 0 is the root, which alone reads the store and, but in jitc_compile_all, calls the
                  daemon */
  int ranks;   /* how many there are, 1 or more */
  /* Bitwise OR of `count` words over all ranks, result on all ranks. */
  int (*iallreduce_or)(void* state, const uint64_t* send, uint64_t* receive, size_t count, jitc_pending* pending);
  /* `bytes` (at most 2^30) bytes from rank `root` to all. */
  int (*ibcast)(void* state, void* buffer, size_t bytes, int root, jitc_pending* pending);
  /* Progresses `pending`; sets *done to 1 when it is complete, 0 when not yet. */
  int (*test)(void* state, jitc_pending* pending, int* done);
  /* Text of an error code, cut to `capacity` bytes with its final 0. May be NULL. */
  void (*error_text)(void* state, int code, char* text, size_t capacity);
  /* Called once by jitc_context_close, unless the context is broken (operations may be pending). May be NULL. */
  void (*release)(void* state);
  /* These three or none; without them the error of a time-out tells of the waiting rank alone, with them of all ranks.
   * `bytes` bytes (at most a thousand) to rank `to`. */
  int (*isend)(void* state, const void* buffer, size_t bytes, int to, jitc_pending* pending);
  /* What rank `from` sends, at most `bytes` bytes. */
  int (*irecv)(void* state, void* buffer, size_t bytes, int from, jitc_pending* pending);
  /* Sets *is_there to 1 when a message of any rank's, sent by `isend`, waits to be received; else to 0. */
  int (*iprobe)(void* state, int* is_there);
} jitc_communicator;

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

/* What compiles over one communicator, or in one process alone; closed by jitc_context_close. */
typedef struct jitc_context jitc_context;

/* What a call is at. */
typedef enum jitc_phase JITC_AS_INT {
  JITC_PHASE_CONNECTING = 0,   /* the root looks into the store, or connects to the daemon */
  JITC_PHASE_QUEUED = 1,       /* the daemon has it and waits for a slot or for memory */
  JITC_PHASE_COMPILING = 2,    /* a compiler runs */
  JITC_PHASE_LOADING = 3,      /* the artifact is sent to the ranks, which load it */
  JITC_PHASE_ARRIVING = 4,     /* other ranks have not begun this call yet */
  JITC_PHASE_RECONNECTING = 5, /* the daemon went away; the root asks another one */
  JITC_PHASE_ELSEWHERE = 6     /* another node compiles it, for the store that both have */
} jitc_phase;

/* What a waiting rank is told about once a second. */
typedef struct jitc_progress {
  size_t size;           /* sizeof of this structure */
  jitc_phase phase;      /* what the root is at; ARRIVING: this rank */
  uint32_t place;        /* in the daemon's queue, 1: next; 0: running */
  double seconds;        /* since jitc_compile began on the root; ARRIVING: of waiting here */
  uint64_t memory_bytes; /* of the compiler; 0: not known */
  const char* name;      /* of the request */
} jitc_progress;

/* Runs on every rank, on the thread that called jitc_compile. It must neither throw nor call the library. */
typedef void (*jitc_progress_callback)(void* state, const jitc_progress* progress);

/* A setting for one context. */
typedef struct jitc_setting {
  const char* name;  /* as in `jitc config` and the TOML files: "timeout", "runtime_dir", "divergent", ... */
  const char* value; /* as text: "30s", "/path", "adopt" */
} jitc_setting;

/* How a context is opened. The caller's, copied by jitc_context_open. */
typedef struct jitc_options {
  size_t size;                     /* sizeof of this structure */
  const jitc_setting* settings;    /* stronger than environment and files */
  size_t setting_count;            /* of `settings` */
  jitc_progress_callback progress; /* NULL: the root prints a line on a terminal after two seconds (JITC_PROGRESS) */
  void* progress_state;            /* first argument of `progress` */
} jitc_options;

/* Opens a context. `communicator` NULL: this process alone (one rank, no MPI). The table is copied; `release` is called
 * by jitc_context_close, and at once when opening fails. `options` NULL: defaults. Local, no communication: a wrong
 * setting on one rank is reported by the first jitc_compile, on all ranks. Fails with JITC_USAGE for a table that is
 * not complete. */
JITC_API jitc_kind jitc_context_open(const jitc_communicator* communicator, const jitc_options* options,
                                     jitc_context** context, jitc_error** error);
/* Closes it; modules stay loaded. Collective where the communicator's release is (MPI_Comm_free is). NULL is allowed.
 */
JITC_API void jitc_context_close(jitc_context* context);
/* 1 after a call has timed out or the communicator has failed, else 0. */
JITC_API int jitc_context_is_broken(const jitc_context* context);

/* What a context has done so far; the same on every rank, apart from `seconds`. */
typedef struct jitc_stats {
  size_t size;                 /* sizeof of this structure */
  uint64_t calls;              /* of jitc_compile, jitc_compile_problem and jitc_compile_all */
  uint64_t memory_hits;        /* of modules, as all up to `merged`: every rank held it already */
  uint64_t shared_hits;        /* the root held it and sent it to ranks that did not */
  uint64_t store_hits;         /* the root read it from the store */
  uint64_t daemon_hits;        /* the daemon had it */
  uint64_t merged;             /* the daemon was compiling it for somebody else already */
  uint64_t compilers_started;  /* compiles that this context caused, as the daemon's replies said */
  uint64_t failures;           /* calls that returned an error */
  double last_seconds;         /* of the last jitc_compile, from call to function pointers */
  double total_seconds;        /* of all calls */
  double last_compile_seconds; /* of the compiler, as the daemon said, the longest; 0 on a hit */
  uint64_t last_peak_bytes;    /* of the compiler, as the daemon said, the largest; 0 on a hit */
  uint64_t codes_made; /* times the root differentiated and printed a problem, or shared a text: never on a hit of
                          memory or store */
} jitc_stats;
/* Fills the first stats->size bytes. */
JITC_API void jitc_context_stats(const jitc_context* context, jitc_stats* stats);

/* ---- compiling --------------------------------------------------------------------------------------------------- */

/* A header that travels with a request, so that its text is in the key. */
typedef struct jitc_header {
  const char* name; /* as the #include directive spells it */
  const char* text; /* up to the final 0 */
} jitc_header;

/* A text that grows: what a source callback fills, and what functions hand out. */
typedef struct jitc_text jitc_text;
/* Its bytes, with a final 0 after them; they live until it is changed or freed. `length` may be NULL. */
JITC_API const char* jitc_text_bytes(const jitc_text* text, size_t* length);
/* For texts that a function handed out; NULL is allowed. */
JITC_API void jitc_text_free(jitc_text* text);
/* Adds `length` bytes, which are copied. */
JITC_API void jitc_text_append(jitc_text* text, const char* bytes, size_t length);
/* Says why no source can be made; jitc_compile then fails on every rank with this message and this rank. */
JITC_API void jitc_text_fail(jitc_text* text, const char* message);
/* Makes the source; called once per jitc_compile, on every rank, before any communication. Returns 0, or anything else
 * for a failure. It must not throw. */
typedef int (*jitc_source_callback)(void* state, jitc_text* text);

/* What is compiled, and how. The caller's; it is not used after the call. */
typedef struct jitc_request {
  size_t size;                      /* sizeof of this structure */
  const char* source;               /* C text */
  size_t source_length;             /* bytes; 0: up to the final 0 */
  jitc_source_callback make_source; /* instead of `source` */
  void* make_source_state;          /* first argument of `make_source` */
  const char* name;                 /* for people: in progress lines and diagnostics; NULL: "source.c" */
  const char* const* flags;         /* appended to the setting `cflags` (JITC_CFLAGS) */
  size_t flag_count;                /* of `flags` */
  const char* compiler;             /* "clang" (embedded), "gcc" or an allow-listed path; NULL: the setting `cc` */
  const char*
      abi_tag;     /* what else decides the binary interface, for example PETSc's version and sizes; part of the key */
  const char* isa; /* "common" (of all ranks), "native" (of the daemon's node) or a level; NULL: the setting `isa` */
  const jitc_header* headers; /* travel with the request */
  size_t header_count;        /* of `headers` */
  /* The constants' layout that belongs to the source, any bytes. Not part of any key, but it must be equal on all
   * ranks: the same source with another order of constants computes wrong numbers. */
  const void* manifest;
  size_t manifest_length; /* bytes */
  /* 1: never compiled with other flags than these. Else, when a compile runs out of memory although it was alone, it is
   * tried once more at an optimisation level that takes less; what that gives is kept in no store. Part of the key. */
  int exact_flags;
  /* 1: compiled although the store has it; what this process holds already is taken all the same. The root's word
   * counts. What is compiled is published where the store has none. */
  int no_cache;
} jitc_request;

/* Functions that were compiled and loaded; given back by jitc_module_release. */
typedef struct jitc_module jitc_module;

/* Compiles (or finds) and loads. Collective.
 *
 * One small non-blocking allreduce when every rank holds the module already. Otherwise the root alone looks into the
 * store or asks the daemon, and sends the artifact to all ranks, which load it from memory: no other rank opens a file.
 *
 * Fails with JITC_DIVERGENT, naming ranks and the first difference, when ranks ask for different things; with the
 * setting `divergent` = adopt on every rank, the root's request and manifest are used instead (jitc_module_manifest).
 * Fails with the smallest failing rank's own error when a rank cannot make its request.
 *
 * JITC_TIMED_OUT with jitc_error_is_broken: some rank did not begin the call within the setting `arrival_timeout`
 * (ranks may be far apart when they come to it), or fell silent during it for longer than the setting `timeout`.
 * Operations are then pending for ever, so the context is broken: buffers stay allocated, and every later call returns
 * JITC_BROKEN at once with the first cause. The message says which ranks wait in which step and which do not answer;
 * finding that out takes twice the setting `timeout` more, and at most 10 s. The library never ends the program:
 * end it by MPI_Abort, as no rank can know what the others still do. */
JITC_API jitc_kind jitc_compile(jitc_context* context, const jitc_request* request, jitc_module** module,
                                jitc_error** error);

/* One module of jitc_compile_all: what jitc_compile takes, or jitc_compile_problem. */
typedef struct jitc_item {
  size_t size;                             /* sizeof of this structure */
  const jitc_request* request;             /* NULL, for a problem: defaults */
  struct jitc_problem* problem;            /* NULL: the request has the source */
  const struct jitc_emit_options* options; /* of the problem */
} jitc_item;

/* Compiles (or finds) and loads `count` modules, at least one, together. Collective: all ranks ask for the same ones in
 * the same order. `modules` has room for `count`; what is asked for twice is compiled once.
 *
 * One small non-blocking allreduce for all of them when every rank holds them already. Otherwise the root looks all of
 * them up in the store; what is missing is compiled at the same time, as far as the daemons allow, and spread over the
 * nodes when the communicator's ranks have several daemons.
 *
 * All or nothing: on failure every module is NULL. The error names the modules that failed; the others that compiled
 * are in the store. Otherwise as jitc_compile. */
JITC_API jitc_kind jitc_compile_all(jitc_context* context, const jitc_item* items, size_t count, jitc_module** modules,
                                    jitc_error** error);

/* ---- modules ----------------------------------------------------------------------------------------------------- */

/* Where a module came from. */
typedef enum jitc_origin JITC_AS_INT {
  JITC_FROM_MEMORY = 0, /* every rank held it */
  JITC_FROM_RANK = 1,   /* the root held it and sent it */
  JITC_FROM_STORE = 2,  /* read by the root, without asking the daemon */
  JITC_FROM_DAEMON = 3, /* a hit of the daemon's, or merged into a compile that was running */
  JITC_COMPILED = 4     /* a compiler ran for this call */
} jitc_origin;

/* What follows takes NULL for a module that there is not: "" for its key, path and manifest, no address. */

/* Address of a function or variable that the module defines. Local. JITC_USAGE when it defines none of this name. Valid
 * until the module is released. */
JITC_API jitc_kind jitc_module_symbol(const jitc_module* module, const char* name, void** address, jitc_error** error);
JITC_API const char* jitc_module_key(const jitc_module* module); /* artifact key, 64 hexadecimal digits */
JITC_API jitc_origin
jitc_module_origin(const jitc_module* module); /* of the call that returned it; same on all ranks */
/* A file with the artifact's bytes, for as long as the module lives and for this process alone: /proc/self/fd/NUMBER,
 * or a file in the setting `stage_dir`. */
JITC_API const char* jitc_module_path(const jitc_module* module);
/* The manifest of constants in force: the caller's own, or the root's when it was adopted. */
JITC_API const void* jitc_module_manifest(const jitc_module* module, size_t* length);
/* Gives it back. Local. The code is unloaded when nobody in this process holds it any more. NULL is allowed. */
JITC_API void jitc_module_release(jitc_module* module);

/* The library's version, "0.1.0"; lives as long as the program. */
JITC_API const char* jitc_version(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "problem.h"

#endif /* JITC_JITC_H */
