! jitc for Fortran 2008: what a solver needs of the C interfaces <jitc/problem.h> and <jitc/jitc.h>, by
! iso_c_binding. Meanings, units and ownership are stated in those headers. Compile this file with the program (module
! files belong to one compiler) and link libjitc.
!
! Texts that are given end with a null character: 'f1_0'//c_null_char. Indices count from 0, as in C. Optional objects
! (options, requests, errors) are c_null_ptr when they are not wanted. For a communicator write the table of
! jitc_communicator in C; c_null_ptr is this process alone.
module jitc
  use, intrinsic :: iso_c_binding
  implicit none
  public

  integer(c_int32_t), parameter :: jitc_none = -1_c_int32_t  ! no node, no index
  integer(c_int), parameter :: jitc_ok = 0

  enum, bind(c)  ! jitc_leaf
    enumerator :: jitc_leaf_u = 0, jitc_leaf_u_t, jitc_leaf_u_x, jitc_leaf_a, jitc_leaf_a_t, jitc_leaf_a_x
    enumerator :: jitc_leaf_t, jitc_leaf_u_t_shift, jitc_leaf_x, jitc_leaf_n, jitc_leaf_constants
  end enum
  enum, bind(c)  ! jitc_function_kind
    enumerator :: jitc_f0 = 0, jitc_f1, jitc_g0, jitc_g1, jitc_g2, jitc_g3
  end enum
  enum, bind(c)  ! jitc_tangent
    enumerator :: jitc_newton = 0, jitc_picard, jitc_continuation
  end enum
  enum, bind(c)  ! jitc_origin
    enumerator :: jitc_from_memory = 0, jitc_from_rank, jitc_from_store, jitc_from_daemon, jitc_compiled
  end enum

  type, bind(c) :: jitc_block
    integer(c_size_t) :: size = 0  ! set by jitc_add_block
    type(c_ptr) :: name = c_null_ptr  ! likewise
    integer(c_int) :: kind = jitc_g0
    integer(c_int32_t) :: test = 0
    integer(c_int32_t) :: trial = 0
    integer(c_int) :: boundary = 0
    type(c_ptr) :: entries = c_null_ptr
    integer(c_size_t) :: entry_count = 0
    integer(c_int) :: tangent = jitc_newton
    integer(c_int32_t) :: continuation = 0
    type(c_ptr) :: frozen = c_null_ptr
    integer(c_size_t) :: frozen_count = 0
  end type jitc_block

  type, bind(c) :: jitc_emit_options  ! given as c_loc of a target
    integer(c_size_t) :: size = 0  ! c_sizeof of it
    type(c_ptr) :: sharing = c_null_ptr
    type(c_ptr) :: types = c_null_ptr
    integer(c_int32_t) :: int_bits = 32
    integer(c_int) :: complex_scalar = 0
    integer(c_int) :: runtime_offsets = 0
    type(c_ptr) :: prefix = c_null_ptr
    integer(c_int) :: skip_zero = 0
    integer(c_int) :: table = 0
    integer(c_int) :: lazy_arms = 0
    integer(c_int) :: layout = 0
    type(c_ptr) :: canary = c_null_ptr
    integer(c_int) :: keep_zero = 0
  end type jitc_emit_options

  type, bind(c) :: jitc_point
    integer(c_size_t) :: size = 0  ! set by jitc_evaluate
    type(c_ptr) :: u = c_null_ptr
    type(c_ptr) :: u_t = c_null_ptr
    type(c_ptr) :: u_x = c_null_ptr
    type(c_ptr) :: a = c_null_ptr
    type(c_ptr) :: a_t = c_null_ptr
    type(c_ptr) :: a_x = c_null_ptr
    real(c_double) :: t = 0
    real(c_double) :: u_t_shift = 0
    type(c_ptr) :: x = c_null_ptr
    type(c_ptr) :: n = c_null_ptr
    type(c_ptr) :: constants = c_null_ptr
  end type jitc_point

  interface
    ! ---- errors and texts ----
    type(c_ptr) function jitc_error_text(error) bind(c)
      import :: c_ptr
      type(c_ptr), value :: error
    end function jitc_error_text
    subroutine jitc_error_free(error) bind(c)
      import :: c_ptr
      type(c_ptr), value :: error
    end subroutine jitc_error_free
    type(c_ptr) function jitc_text_bytes(text, length) bind(c)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t), intent(out) :: length
    end function jitc_text_bytes
    subroutine jitc_text_free(text) bind(c)
      import :: c_ptr
      type(c_ptr), value :: text
    end subroutine jitc_text_free

    ! ---- problems ----
    type(c_ptr) function jitc_problem_open(name, dim) bind(c)
      import :: c_ptr, c_char, c_int32_t
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: dim
    end function jitc_problem_open
    subroutine jitc_problem_free(problem) bind(c)
      import :: c_ptr
      type(c_ptr), value :: problem
    end subroutine jitc_problem_free
    subroutine jitc_problem_set(problem, option, value) bind(c)
      import :: c_ptr, c_char
      type(c_ptr), value :: problem
      character(kind=c_char), intent(in) :: option(*), value(*)
    end subroutine jitc_problem_set
    integer(c_int) function jitc_problem_check(problem, error) bind(c)
      import :: c_ptr, c_int
      type(c_ptr), value :: problem
      type(c_ptr), intent(out) :: error
    end function jitc_problem_check
    integer(c_int32_t) function jitc_problem_field(problem, name, components) bind(c)
      import :: c_ptr, c_char, c_int32_t
      type(c_ptr), value :: problem
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: components
    end function jitc_problem_field
    integer(c_int32_t) function jitc_problem_aux_field(problem, name, components) bind(c)
      import :: c_ptr, c_char, c_int32_t
      type(c_ptr), value :: problem
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: components
    end function jitc_problem_aux_field
    integer(c_int32_t) function jitc_problem_constant(problem, name, value) bind(c)
      import :: c_ptr, c_char, c_int32_t, c_double
      type(c_ptr), value :: problem
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), value :: value
    end function jitc_problem_constant
    subroutine jitc_problem_set_constant(problem, constant, value) bind(c)
      import :: c_ptr, c_int32_t, c_double
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: constant
      real(c_double), value :: value
    end subroutine jitc_problem_set_constant
    integer(c_size_t) function jitc_problem_constants(problem, values, capacity) bind(c)
      import :: c_ptr, c_double, c_size_t
      type(c_ptr), value :: problem
      real(c_double), intent(inout) :: values(*)
      integer(c_size_t), value :: capacity
    end function jitc_problem_constants

    ! `partials`: a jitc_none for each derivative that is not known.
    integer(c_int32_t) function jitc_problem_function(problem, name, arity, partials) bind(c)
      import :: c_ptr, c_char, c_int32_t
      type(c_ptr), value :: problem
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: arity
      integer(c_int32_t), intent(in) :: partials(*)
    end function jitc_problem_function
    integer(c_int) function jitc_problem_has_failed(problem) bind(c)
      import :: c_ptr, c_int
      type(c_ptr), value :: problem
    end function jitc_problem_has_failed

    ! ---- nodes ----
    integer(c_int32_t) function jitc_node_number(problem, value) bind(c)
      import :: c_ptr, c_int32_t, c_double
      type(c_ptr), value :: problem
      real(c_double), value :: value
    end function jitc_node_number
    integer(c_int32_t) function jitc_node_rational(problem, numerator, denominator) bind(c)
      import :: c_ptr, c_int32_t, c_int64_t
      type(c_ptr), value :: problem
      integer(c_int64_t), value :: numerator, denominator
    end function jitc_node_rational
    integer(c_int32_t) function jitc_node_leaf(problem, leaf, index) bind(c)
      import :: c_ptr, c_int32_t, c_int
      type(c_ptr), value :: problem
      integer(c_int), value :: leaf
      integer(c_int32_t), value :: index
    end function jitc_node_leaf
    integer(c_int32_t) function jitc_node_field(problem, leaf, field, component, direction) bind(c)
      import :: c_ptr, c_int32_t, c_int
      type(c_ptr), value :: problem
      integer(c_int), value :: leaf
      integer(c_int32_t), value :: field, component, direction
    end function jitc_node_field
    integer(c_int32_t) function jitc_node_apply(problem, op, arguments, count) bind(c)
      import :: c_ptr, c_char, c_int32_t, c_size_t
      type(c_ptr), value :: problem
      character(kind=c_char), intent(in) :: op(*)
      integer(c_int32_t), intent(in) :: arguments(*)
      integer(c_size_t), value :: count
    end function jitc_node_apply
    integer(c_int32_t) function jitc_node_call(problem, function, arguments, count) bind(c)
      import :: c_ptr, c_int32_t, c_size_t
      type(c_ptr), value :: problem
      integer(c_int32_t), value :: function
      integer(c_int32_t), intent(in) :: arguments(*)
      integer(c_size_t), value :: count
    end function jitc_node_call
    integer(c_int32_t) function jitc_node_named(problem, name, body) bind(c)
      import :: c_ptr, c_char, c_int32_t
      type(c_ptr), value :: problem
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: body
    end function jitc_node_named

    ! ---- functions ----
    subroutine jitc_problem_residual(problem, name, kind, field, boundary, entries, count) bind(c)
      import :: c_ptr, c_char, c_int, c_int32_t, c_size_t
      type(c_ptr), value :: problem
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: kind
      integer(c_int32_t), value :: field
      integer(c_int), value :: boundary
      integer(c_int32_t), intent(in) :: entries(*)
      integer(c_size_t), value :: count
    end subroutine jitc_problem_residual
    subroutine jitc_problem_block(problem, block) bind(c)
      import :: c_ptr, jitc_block
      type(c_ptr), value :: problem
      type(jitc_block), intent(in) :: block
    end subroutine jitc_problem_block
    integer(c_int) function jitc_problem_emit(problem, options, text, error) bind(c)
      import :: c_ptr, c_int
      type(c_ptr), value :: problem, options
      type(c_ptr), intent(out) :: text, error
    end function jitc_problem_emit
    integer(c_int) function jitc_problem_evaluate(problem, function, point, values, count, error) bind(c)
      import :: c_ptr, c_char, c_int, c_double, c_size_t, jitc_point
      type(c_ptr), value :: problem
      character(kind=c_char), intent(in) :: function(*)
      type(jitc_point), intent(in) :: point
      real(c_double), intent(out) :: values(*)
      integer(c_size_t), value :: count
      type(c_ptr), intent(out) :: error
    end function jitc_problem_evaluate

    ! ---- contexts and modules ----
    integer(c_int) function jitc_context_open(communicator, options, context, error) bind(c)
      import :: c_ptr, c_int
      type(c_ptr), value :: communicator, options
      type(c_ptr), intent(out) :: context, error
    end function jitc_context_open
    subroutine jitc_context_close(context) bind(c)
      import :: c_ptr
      type(c_ptr), value :: context
    end subroutine jitc_context_close
    integer(c_int) function jitc_compile_problem(context, problem, options, request, module, error) bind(c)
      import :: c_ptr, c_int
      type(c_ptr), value :: context, problem, options, request
      type(c_ptr), intent(out) :: module, error
    end function jitc_compile_problem
    integer(c_int) function jitc_module_function(module, name, address, error) bind(c)
      import :: c_ptr, c_funptr, c_char, c_int
      type(c_ptr), value :: module
      character(kind=c_char), intent(in) :: name(*)
      type(c_funptr), intent(out) :: address
      type(c_ptr), intent(out) :: error
    end function jitc_module_function
    integer(c_int) function jitc_module_origin(module) bind(c)
      import :: c_ptr, c_int
      type(c_ptr), value :: module
    end function jitc_module_origin
    subroutine jitc_module_release(module) bind(c)
      import :: c_ptr
      type(c_ptr), value :: module
    end subroutine jitc_module_release
  end interface

contains

  ! An operator by name, without the null character and the count.
  integer(c_int32_t) function jitc_apply(problem, op, arguments)
    type(c_ptr), intent(in) :: problem
    character(len=*), intent(in) :: op
    integer(c_int32_t), intent(in) :: arguments(:)
    jitc_apply = jitc_node_apply(problem, op//c_null_char, arguments, size(arguments, kind=c_size_t))
  end function jitc_apply

  subroutine jitc_add_residual(problem, name, kind, field, entries)
    type(c_ptr), intent(in) :: problem
    character(len=*), intent(in) :: name
    integer(c_int), intent(in) :: kind
    integer(c_int32_t), intent(in) :: field
    integer(c_int32_t), intent(in) :: entries(:)
    call jitc_problem_residual(problem, name//c_null_char, kind, field, 0_c_int, entries, size(entries, kind=c_size_t))
  end subroutine jitc_add_residual

  ! `block` with its name and size, which this fills in.
  subroutine jitc_add_block(problem, name, block)
    type(c_ptr), intent(in) :: problem
    character(len=*), intent(in) :: name
    type(jitc_block), intent(in) :: block
    character(kind=c_char, len=len(name) + 1), target :: text
    type(jitc_block) :: whole
    text = name//c_null_char
    whole = block
    whole%size = c_sizeof(whole)
    whole%name = c_loc(text)
    call jitc_problem_block(problem, whole)
  end subroutine jitc_add_block

  integer(c_int) function jitc_evaluate(problem, name, point, values, error)
    type(c_ptr), intent(in) :: problem
    character(len=*), intent(in) :: name
    type(jitc_point), intent(in) :: point
    real(c_double), intent(out) :: values(:)
    type(c_ptr), intent(out) :: error
    type(jitc_point) :: whole
    whole = point
    whole%size = c_sizeof(whole)
    jitc_evaluate = jitc_problem_evaluate(problem, name//c_null_char, whole, values, size(values, kind=c_size_t), error)
  end function jitc_evaluate

  ! The text of an error, which is freed.
  function jitc_take_error(error) result(message)
    type(c_ptr), intent(in) :: error
    character(len=:), allocatable :: message
    if (c_associated(error)) then
      message = from_c(jitc_error_text(error))
      call jitc_error_free(error)
    else
      message = 'jitc failed without an error object'
    end if
  end function jitc_take_error

  ! What a text holds; it is freed.
  function jitc_take_text(text) result(bytes)
    type(c_ptr), intent(in) :: text
    character(len=:), allocatable :: bytes
    integer(c_size_t) :: length
    bytes = from_c(jitc_text_bytes(text, length))
    call jitc_text_free(text)
  end function jitc_take_text

  function from_c(text) result(copy)
    type(c_ptr), intent(in) :: text
    character(len=:), allocatable :: copy
    character(kind=c_char), pointer :: bytes(:)
    integer :: length, i
    interface
      integer(c_size_t) function c_strlen(text) bind(c, name='strlen')
        import :: c_ptr, c_size_t
        type(c_ptr), value :: text
      end function c_strlen
    end interface
    length = int(c_strlen(text))
    call c_f_pointer(text, bytes, [length])
    allocate (character(len=length) :: copy)
    do i = 1, length
      copy(i:i) = bytes(i)
    end do
  end function from_c
end module jitc
