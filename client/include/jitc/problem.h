/* Problems: what a solver states (fields, constants, residual functions, the Jacobian blocks it wants) as expressions,
 * from which libjitc derives, prints and compiles the C functions. Part of <jitc/jitc.h>; its rules hold here.
 *
 *   jitc_problem* problem = jitc_problem_open("poisson", 2);
 *   const uint32_t u = jitc_problem_field(problem, "u", 1);
 *   const uint32_t k = jitc_problem_constant(problem, "k", 1.5);
 *   jitc_node flux[2];
 *   for (uint32_t d = 0; d < 2; ++d) {
 *     const jitc_node args[2] = {jitc_node_leaf(problem, JITC_LEAF_CONSTANTS, k),
 *                                jitc_node_field(problem, JITC_LEAF_U_X, u, 0, d)};
 *     flux[d] = jitc_node_apply(problem, "mul", args, 2);
 *   }
 *   jitc_problem_residual(problem, "f1_0", JITC_F1, u, 0, flux, 2);
 *   jitc_block block = {sizeof block};
 *   block.name = "g3_0_0"; block.kind = JITC_G3; block.test = u; block.trial = u;
 *   jitc_problem_block(problem, &block);
 *   status = jitc_compile_problem(context, problem, NULL, NULL, &module, &error);
 *
 * Errors of the building functions stay with the problem: the first one wins, makes every later building call a no-op
 * that returns JITC_NONE, and is returned by each function that gives a status. So a builder may check once, at the
 * end. It names the call, the operator and, where the option "origin" was set, where the node comes from. What is found
 * later, of derivatives that do not exist or leaves outside of the layout, names function, entry, jitc_node and origin.
 *
 * A problem is used by one thread at a time. Nothing here is collective but jitc_compile_problem. */
#ifndef JITC_PROBLEM_H
#define JITC_PROBLEM_H

#include "jitc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fields, constants, residual functions and Jacobian blocks; freed by jitc_problem_free. */
typedef struct jitc_problem jitc_problem;
/* An expression, or a condition, of one problem. Equal expressions are the same node. */
typedef uint32_t jitc_node;
/* What functions return that give a node or an index and have none to give. */
#define JITC_NONE UINT32_MAX

/* ---- problems ---------------------------------------------------------------------------------------------------- */

/* `dim`: 1 to 3. NULL only when there is no memory. */
JITC_API jitc_problem* jitc_problem_open(const char* name, uint32_t dim);
/* From the JSON format of docs/problem_format.md. `length` 0: up to the final 0. */
JITC_API jitc_kind jitc_problem_from_json(const char* text, size_t length, jitc_problem** problem, jitc_error** error);
JITC_API void jitc_problem_free(jitc_problem* problem); /* NULL is allowed; compiled modules stay */

/* Options, by name; they may be set at any time before the problem is used:
 *   "ties"            "half" (default), "first": the derivative of max and min where arguments are equal
 *   "guard"           a number, for example 1e-36 (default 0: off), added to the base of half-integer powers before
 *                     Newton's derivatives are taken
 *   "sort_constants"  "0" (default), "1": slots in order of (name, creation) rather than of creation
 *   "origin"          free text: where the nodes and functions that follow come from; errors show it */
JITC_API void jitc_problem_set(jitc_problem* problem, const char* option, const char* value);
/* 1 after a building function has failed, else 0. */
JITC_API int jitc_problem_has_failed(const jitc_problem* problem);
/* The first error of building; else whether all sizes, kinds and indices agree. */
JITC_API jitc_kind jitc_problem_check(const jitc_problem* problem, jitc_error** error);

/* Unknown and auxiliary fields, in order; they return the field's index. Component c of a field is u[first + c], its
 * gradient u_x[(first + c) * dim + d], where `first` counts the components of the fields before it. */
JITC_API uint32_t jitc_problem_field(jitc_problem* problem, const char* name, uint32_t components);
/* The same of an auxiliary field: its components count in a[], a_t[] and a_x[]. */
JITC_API uint32_t jitc_problem_aux_field(jitc_problem* problem, const char* name, uint32_t components);

/* A slot of constants[]; returns its index by order of creation. Two constants of one name stay two. */
JITC_API uint32_t jitc_problem_constant(jitc_problem* problem, const char* name, double value);
/* Values are no part of the source nor of any key: changing one compiles nothing. */
JITC_API void jitc_problem_set_constant(jitc_problem* problem, uint32_t constant, double value);
/* Writes at most `capacity` values, in order of slots, as the functions' argument constants[] wants them; returns how
 * many there are. */
JITC_API size_t jitc_problem_constants(const jitc_problem* problem, double* values, size_t capacity);

/* A function that is known by name only, of `arity` doubles, returning a double: the text declares it, and whoever
 * links the text (jitc_problem_emit) defines it. A module is linked without undefined symbols, so jitc_compile_problem
 * fails with JITC_INVALID_SOURCE where one is called. partials[i] is the declared function that gives the derivative by
 * argument i, with the same arguments, or JITC_NONE; `partials` NULL: none is known. Returns the function's index.
 * Declaring a name again gives the same index and adds the partials: so a function may be its own derivative. */
JITC_API uint32_t jitc_problem_function(jitc_problem* problem, const char* name, uint32_t arity,
                                        const uint32_t* partials);

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

/* The arguments of a pointwise function that an expression may hold, and what their index means. */
typedef enum jitc_leaf JITC_AS_INT {
  JITC_LEAF_U = 0,         /* flat index */
  JITC_LEAF_U_T = 1,       /* flat index */
  JITC_LEAF_U_X = 2,       /* flat index of the component * dim + direction */
  JITC_LEAF_A = 3,         /* as u, of the auxiliary fields, as the two that follow */
  JITC_LEAF_A_T = 4,       /* as u_t */
  JITC_LEAF_A_X = 5,       /* as u_x */
  JITC_LEAF_T = 6,         /* index 0 */
  JITC_LEAF_U_T_SHIFT = 7, /* index 0; Jacobian blocks only */
  JITC_LEAF_X = 8,         /* direction */
  JITC_LEAF_N = 9,         /* direction; boundary functions only */
  JITC_LEAF_CONSTANTS = 10 /* index of a constant */
} jitc_leaf;

/* A double, by its 64 bits. */
JITC_API jitc_node jitc_node_number(jitc_problem* problem, double value);
/* numerator / denominator, each rounded to a double first, as C text does it. */
JITC_API jitc_node jitc_node_rational(jitc_problem* problem, int64_t numerator, int64_t denominator);
/* The double next to an exact text: "3", "0.1", "-0x1.8p+1", each of any length; "-1/3" is a quotient as above. */
JITC_API jitc_node jitc_node_literal(jitc_problem* problem, const char* text);
/* One entry of an argument; `index` as jitc_leaf says. */
JITC_API jitc_node jitc_node_leaf(jitc_problem* problem, jitc_leaf leaf, uint32_t index);
/* The same by field: `leaf` is U, U_T, U_X, A, A_T or A_X; `direction` counts for U_X and A_X only. */
JITC_API jitc_node jitc_node_field(jitc_problem* problem, jitc_leaf leaf, uint32_t field, uint32_t component,
                                   uint32_t direction);
/* An operator by name, with its arguments:
 *   neg sqrt cbrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc
 *   abs floor ceil sign               one value
 *   sub div pow atan2 hypot fmod heaviside fmax fmin    two values (heaviside: x, value at 0)
 *   times power                       two values: a product that is never regrouped, pow for integer exponents too
 *   add mul max min                   one or more values; sums and products fold left
 *   lt le gt ge eq ne                 two values, giving a condition
 *   and or not                        conditions; `not` takes one
 *   true false pi e                   none
 *   select                            condition, value when true, value when false
 *   piecewise                         condition, value, condition, value, ...; the last condition is `true` */
JITC_API jitc_node jitc_node_apply(jitc_problem* problem, const char* op, const jitc_node* arguments, size_t count);
/* A call of a declared function (jitc_problem_function) with as many values as it takes. */
JITC_API jitc_node jitc_node_call(jitc_problem* problem, uint32_t function, const jitc_node* arguments, size_t count);
/* `body` under a name: derivatives see through it (Newton) or hold it fixed (Picard), by block. */
JITC_API jitc_node jitc_node_named(jitc_problem* problem, const char* name, jitc_node body);

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* PETSc's pointwise functions and the layout of their output: fc, df are component and direction of the residual, gc,
 * dg of the unknown, Ng the number of its components. */
typedef enum jitc_function_kind JITC_AS_INT {
  JITC_F0 = 0, /* f0[fc] */
  JITC_F1 = 1, /* f1[fc * dim + df] */
  JITC_G0 = 2, /* g0[fc*Ng+gc]                   = d f0[fc]     / d u[gc] */
  JITC_G1 = 3, /* g1[(fc*Ng+gc)*dim+dg]          = d f0[fc]     / d u_x[gc,dg] */
  JITC_G2 = 4, /* g2[(fc*Ng+gc)*dim+df]          = d f1[fc,df]  / d u[gc] */
  JITC_G3 = 5  /* g3[((fc*Ng+gc)*dim+df)*dim+dg] = d f1[fc,df]  / d u_x[gc,dg] */
} jitc_function_kind;

/* A residual function of one field; `entries` in the layout above. `boundary` 1: with the normal n. */
JITC_API void jitc_problem_residual(jitc_problem* problem, const char* name, jitc_function_kind kind, uint32_t field,
                                    int boundary, const jitc_node* entries, size_t count);

/* How the derivatives of a block see named nodes. */
typedef enum jitc_tangent JITC_AS_INT {
  JITC_NEWTON = 0,      /* named nodes are differentiated, except those in `frozen` */
  JITC_PICARD = 1,      /* all named nodes are held fixed */
  JITC_CONTINUATION = 2 /* Picard + c * (Newton - Picard), c a constant */
} jitc_tangent;

/* A Jacobian block. The caller's; it is copied. */
typedef struct jitc_block {
  size_t size;               /* sizeof of this structure */
  const char* name;          /* of its function */
  jitc_function_kind kind;   /* G0 to G3 */
  uint32_t test;             /* field of the residual; fc runs over its components */
  uint32_t trial;            /* field of the unknowns; gc runs over its components */
  int boundary;              /* 1: derivatives of the boundary residuals, with the normal n */
  const jitc_node* entries;  /* given instead of derivatives (preconditioners); NULL: derivatives */
  size_t entry_count;        /* of `entries`, as the kind's layout has */
  jitc_tangent tangent;      /* how named nodes are differentiated */
  uint32_t continuation;     /* JITC_CONTINUATION: the constant c */
  const char* const* frozen; /* JITC_NEWTON: names of nodes to hold fixed */
  size_t frozen_count;       /* of `frozen` */
} jitc_block;

/* Adds a block. */
JITC_API void jitc_problem_block(jitc_problem* problem, const jitc_block* block);

/* A function of a problem: residuals, then blocks, in order. */
typedef struct jitc_function_info {
  size_t size;             /* sizeof of this structure */
  const char* name;        /* lives until the problem is changed */
  jitc_function_kind kind; /* what it is, which gives the layout of its output */
  uint32_t test;           /* field of the residual */
  uint32_t trial;          /* of residuals: JITC_NONE */
  int boundary;            /* 1: a function of the boundary */
  size_t entries;          /* doubles in its output */
} jitc_function_info;
/* How many functions a problem has. */
JITC_API size_t jitc_problem_function_count(const jitc_problem* problem);
/* Fills the first info->size bytes; JITC_USAGE when there is no such function. */
JITC_API jitc_kind jitc_problem_function_info(const jitc_problem* problem, size_t index, jitc_function_info* info,
                                              jitc_error** error);

/* ---- text and values --------------------------------------------------------------------------------------------- */

/* How functions are printed. */
typedef enum jitc_layout JITC_AS_INT {
  JITC_SEPARATE = 0, /* one function each, in PETSc's signature */
  /* One function for all of them at a point, <prefix>fused, whatever `types` says:
   *   void fused(const double *u, const double *u_t, const double *u_x, const double *a, const double *a_t,
   *              const double *a_x, double t, double u_tShift, const double *x, const double *n,
   *              const double *constants, double *out_FUNCTION...)
   * with one output for each of the problem's functions, in order, none of which may overlap an input. */
  JITC_FUSED = 1,
  /* The same for many points, <prefix>batch: its first parameter is `long points`, and element i of point p is
   * array[i * points + p], of every array but `constants`. */
  JITC_BATCH = 2
} jitc_layout;

/* How a problem is printed. The caller's; it is not used after the call. */
typedef struct jitc_emit_options {
  size_t size;         /* sizeof of this structure */
  const char* sharing; /* "0": trees, "1": common subexpressions once, "auto"; NULL: auto, or the setting `cse` */
  const char* types;   /* "petsc" (PetscInt, PetscReal, PetscScalar) or "plain"; NULL: petsc */
  uint32_t int_bits;   /* of PetscInt: 32 or 64; 0: 32 */
  int complex_scalar;  /* 1 is refused: PETSc with complex scalars cannot be had */
  int runtime_offsets; /* 1: fields are found by uOff, uOff_x, aOff, aOff_x instead of baked offsets */
  const char* prefix;  /* of all symbols; NULL: none. jitc_compile_problem chooses its own */
  int skip_zero;       /* 1: functions that are identically zero are left out. jitc_compile_problem: always */
  int table;           /* 1: with the exported table, see jitc_table. jitc_compile_problem: always */
  int lazy_arms;       /* 1: nothing that only an arm of a select needs is computed outside it */
  jitc_layout layout;  /* one function each, or one for all */
  const char* canary;  /* is a fresh module called and compared before anybody gets it? "auto": unless its flags let
                          values differ, "off", "on"; NULL: the setting `canary`. Concerns jitc_compile_problem only */
  int keep_zero; /* 1: jitc_compile_problem makes functions of those that are identically zero, too, for callers that
                    take no NULL */
} jitc_emit_options;

/* The C text, a translation unit; the caller frees it. `options` NULL: defaults. */
JITC_API jitc_kind jitc_problem_emit(const jitc_problem* problem, const jitc_emit_options* options, jitc_text** text,
                                     jitc_error** error);
/* The layout of constants[] as JSON: [{"slot":0,"name":"n"},...]; the caller frees it. */
JITC_API jitc_kind jitc_problem_manifest(const jitc_problem* problem, jitc_text** text, jitc_error** error);

/* Values of the arguments at a point, in the layouts above; what no function needs may be NULL. */
typedef struct jitc_point {
  size_t size;             /* sizeof of this structure */
  const double* u;         /* values of all components of the fields */
  const double* u_t;       /* their derivatives in time */
  const double* u_x;       /* their gradients, `dim` for each component */
  const double* a;         /* as u, of the auxiliary fields */
  const double* a_t;       /* as u_t */
  const double* a_x;       /* as u_x */
  double t;                /* time */
  double u_t_shift;        /* d u_t / d u of the time integrator */
  const double* x;         /* coordinates, `dim` */
  const double* n;         /* outer normal, `dim` */
  const double* constants; /* in order of slots; NULL: the problem's own values */
} jitc_point;
/* One function's values, in doubles, without a compiler: for checks. `count` is its number of entries. Functions that
 * call declared functions cannot be evaluated (JITC_USAGE). */
JITC_API jitc_kind jitc_problem_evaluate(const jitc_problem* problem, const char* function, const jitc_point* point,
                                         double* values, size_t count, jitc_error** error);

/* A C text with the common subexpressions of its straight-line functions computed once: the same 64 bits for every
 * result. What is not understood comes back as it is. `report` (may be NULL) receives JSON: {"nodes", "temporaries",
 * "functions": [{"name", "line", "shared", "reason"}]}. The caller frees both. `length` 0: up to the final 0. */
JITC_API jitc_kind jitc_share(const char* text, size_t length, jitc_text** shared, jitc_text** report,
                              jitc_error** error);

/* ---- compiling --------------------------------------------------------------------------------------------------- */

/* Compiles (or finds) and loads the problem's functions. Collective; all that is said at jitc_compile holds.
 *
 * The key is that of the problem before differentiation, with the options, the request's settings and the version of
 * the printer: a hit takes no derivative and prints nothing, and on a miss the root alone does. Constants' values are
 * not in it; their layout (jitc_module_manifest) must be equal on all ranks.
 *
 * `request` gives flags, compiler, abi_tag, isa, headers and name; its source and manifest must be empty. NULL:
 * defaults. `options` NULL: PETSc's types, 32-bit integers. */
JITC_API jitc_kind jitc_compile_problem(jitc_context* context, jitc_problem* problem, const jitc_emit_options* options,
                                        const jitc_request* request, jitc_module** module, jitc_error** error);

/* A function by the name that the problem gave it. *address is NULL, with JITC_OK, when it is identically zero (PETSc
 * takes NULL for that). Fused functions are "fused" and "batch". JITC_USAGE when there is no such function, or the
 * module was made from C text. Valid until the module is released. */
JITC_API jitc_kind jitc_module_function(const jitc_module* module, const char* name, void** address,
                                        jitc_error** error);

/* All functions of a compiled problem, by groups (residual, bd_residual, jacobian, bd_jacobian) in the order in which
 * the problem's functions open them. It is the one symbol that such a module exports, under the name <prefix>table, and
 * what jitc_problem_emit prints with the option `table`. */
typedef struct jitc_table {
  int version;                    /* 1 */
  int groups;                     /* length of `counts` */
  const int* counts;              /* of functions, by group; their sum is the length of the two arrays below */
  void (*const* functions)(void); /* NULL: identically zero */
  const char* const* names;       /* as the problem gave them */
} jitc_table;
/* NULL when the module was made from C text, or has one fused function. */
JITC_API const jitc_table* jitc_module_table(const jitc_module* module);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* JITC_PROBLEM_H */
