! Diffusion with a conductivity k (1 + u^2): states the flux, gets its derivatives compiled, calls them, and compares them
! with values that no compiler has seen. Needs a running daemon, or JITC_AUTOSTART=1. Ends with 0 when they agree.
program diffusion
  use jitc
  implicit none

  abstract interface  ! PetscPointJac of a PETSc with 32-bit integers and real double scalars
    subroutine point_jacobian(dim, fields, aux_fields, u_offset, u_x_offset, u, u_t, u_x, a_offset, a_x_offset, a, a_t, &
                              a_x, t, u_t_shift, x, constant_count, constants, g) bind(c)
      import :: c_int, c_double, c_ptr
      integer(c_int), value :: dim, fields, aux_fields
      type(c_ptr), value :: u_offset, u_x_offset
      real(c_double), intent(in) :: u(*)
      type(c_ptr), value :: u_t
      real(c_double), intent(in) :: u_x(*)
      type(c_ptr), value :: a_offset, a_x_offset, a, a_t, a_x
      real(c_double), value :: t, u_t_shift
      type(c_ptr), value :: x
      integer(c_int), value :: constant_count
      real(c_double), intent(in) :: constants(*)
      real(c_double), intent(out) :: g(*)
    end subroutine point_jacobian
  end interface

  integer(c_int32_t), parameter :: dim = 2
  type(c_ptr) :: problem, context, module, error
  type(c_funptr) :: address
  procedure(point_jacobian), pointer :: g2, g3
  type(jitc_point) :: point
  real(c_double), target :: u(1) = [0.5d0], u_x(2) = [0.25d0, -2d0]
  real(c_double) :: constants(1), got_g2(2), got_g3(4), wanted_g2(2), wanted_g3(4)
  integer(c_size_t) :: count

  problem = state()
  call demand(jitc_context_open(c_null_ptr, c_null_ptr, context, error), error)
  call demand(jitc_compile_problem(context, problem, c_null_ptr, c_null_ptr, module, error), error)
  call demand(jitc_module_function(module, 'g2_0_0'//c_null_char, address, error), error)
  call c_f_procpointer(address, g2)
  call demand(jitc_module_function(module, 'g3_0_0'//c_null_char, address, error), error)
  call c_f_procpointer(address, g3)

  count = jitc_problem_constants(problem, constants, 1_c_size_t)
  call g2(dim, 1, 0, c_null_ptr, c_null_ptr, u, c_null_ptr, u_x, c_null_ptr, c_null_ptr, c_null_ptr, c_null_ptr, &
          c_null_ptr, 0d0, 0d0, c_null_ptr, int(count, c_int), constants, got_g2)
  call g3(dim, 1, 0, c_null_ptr, c_null_ptr, u, c_null_ptr, u_x, c_null_ptr, c_null_ptr, c_null_ptr, c_null_ptr, &
          c_null_ptr, 0d0, 0d0, c_null_ptr, int(count, c_int), constants, got_g3)

  point%u = c_loc(u)
  point%u_x = c_loc(u_x)
  call demand(jitc_evaluate(problem, 'g2_0_0', point, wanted_g2, error), error)
  call demand(jitc_evaluate(problem, 'g3_0_0', point, wanted_g3, error), error)
  print '(a, 2f10.5)', 'g2_0_0', got_g2
  print '(a, 4f10.5)', 'g3_0_0', got_g3
  if (maxval(abs([got_g2 - wanted_g2, got_g3 - wanted_g3])) > 1d-14) error stop 'FAILED: the compiled values differ'
  if (jitc_module_origin(module) == jitc_compiled) print '(a)', 'one compiler started'

  call jitc_module_release(module)
  call jitc_context_close(context)
  call jitc_problem_free(problem)

contains

  function state() result(made)
    type(c_ptr) :: made
    integer(c_int32_t) :: field, k, value, conductivity, flux(dim), d
    made = jitc_problem_open('diffusion'//c_null_char, dim)
    field = jitc_problem_field(made, 'u'//c_null_char, 1_c_int32_t)
    k = jitc_node_leaf(made, jitc_leaf_constants, jitc_problem_constant(made, 'k'//c_null_char, 1.5d0))
    value = jitc_node_field(made, jitc_leaf_u, field, 0, 0)
    conductivity = jitc_apply(made, 'mul', [k, jitc_apply(made, 'add', [jitc_node_number(made, 1d0), &
                                                                        jitc_apply(made, 'mul', [value, value])])])
    do d = 1, dim
      flux(d) = jitc_apply(made, 'mul', [conductivity, jitc_node_field(made, jitc_leaf_u_x, field, 0, d - 1)])
    end do
    call jitc_add_residual(made, 'f1_0', jitc_f1, field, flux)
    call jitc_add_block(made, 'g2_0_0', jitc_block(kind=jitc_g2, test=field, trial=field))
    call jitc_add_block(made, 'g3_0_0', jitc_block(kind=jitc_g3, test=field, trial=field))
  end function state

  ! Errors of building stay with the problem: the first call that gives a status tells them.
  subroutine demand(status, error)
    integer(c_int), intent(in) :: status
    type(c_ptr), intent(in) :: error
    if (status == jitc_ok) return
    print '(2a)', 'FAILED: ', jitc_take_error(error)
    error stop 1
  end subroutine demand
end program diffusion
