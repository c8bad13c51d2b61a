! States u^2, gets it compiled once for all ranks, calls it on each, and tells the value and the compilers that were
! started.
program consumer
  use jitc
  use mpi
  implicit none

  abstract interface  ! PetscPointFunc of a PETSc with 32-bit integers and real double scalars
    subroutine point_function(dim, fields, aux_fields, u_offset, u_x_offset, u, u_t, u_x, a_offset, a_x_offset, a, a_t, &
                              a_x, t, x, constant_count, constants, f) bind(c)
      import :: c_int, c_double, c_ptr
      integer(c_int), value :: dim, fields, aux_fields
      type(c_ptr), value :: u_offset, u_x_offset
      real(c_double), intent(in) :: u(*)
      type(c_ptr), value :: u_t, u_x, a_offset, a_x_offset, a, a_t, a_x
      real(c_double), value :: t
      type(c_ptr), value :: x
      integer(c_int), value :: constant_count
      type(c_ptr), value :: constants
      real(c_double), intent(out) :: f(*)
    end subroutine point_function
  end interface
  interface  ! communicator.c: a jitc_communicator over a Fortran handle, once a program
    type(c_ptr) function fortran_communicator(comm) bind(c)
      import :: c_ptr, c_int
      integer(c_int), value :: comm
    end function fortran_communicator
  end interface

  type(c_ptr) :: problem, context, module, error
  type(c_funptr) :: address
  procedure(point_function), pointer :: f0
  integer(c_int32_t) :: field, u
  real(c_double) :: value(1), total
  integer :: rank, ranks, code

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)

  problem = jitc_problem_open('square'//c_null_char, 2_c_int32_t)
  field = jitc_problem_field(problem, 'u'//c_null_char, 1_c_int32_t)
  u = jitc_node_field(problem, jitc_leaf_u, field, 0, 0)
  call jitc_add_residual(problem, 'f0_0', jitc_f0, field, [jitc_apply(problem, 'mul', [u, u])])

  call demand(jitc_context_open(fortran_communicator(MPI_COMM_WORLD), c_null_ptr, context, error), error)
  call demand(jitc_compile_problem(context, problem, c_null_ptr, c_null_ptr, module, error), error)
  call demand(jitc_module_function(module, 'f0_0'//c_null_char, address, error), error)
  call c_f_procpointer(address, f0)
  call f0(2, 1, 0, c_null_ptr, c_null_ptr, [6.5d0], c_null_ptr, c_null_ptr, c_null_ptr, c_null_ptr, c_null_ptr, &
          c_null_ptr, c_null_ptr, 0d0, c_null_ptr, 0, c_null_ptr, value)

  call MPI_Reduce(value(1), total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, code)
  if (rank == 0) print '(a, i0, a, f0.2, a, i0)', 'ranks ', ranks, ', mean ', total / ranks, ', compilers started ', &
    merge(1, 0, jitc_module_origin(module) == jitc_compiled)

  call jitc_module_release(module)
  call jitc_context_close(context)
  call jitc_problem_free(problem)
  call MPI_Finalize(code)

contains

  subroutine demand(status, error)
    integer(c_int), intent(in) :: status
    type(c_ptr), intent(in) :: error
    integer :: code
    if (status == jitc_ok) return
    print '(a)', jitc_take_error(error)
    call MPI_Abort(MPI_COMM_WORLD, 1, code)
  end subroutine demand
end program consumer
