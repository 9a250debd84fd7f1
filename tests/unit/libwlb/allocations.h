/* Makes an allocation of libwlb fail. The test must be linked with allocations.c and --wrap of calloc and reallocarray
 * (wlb_fail_allocations in CMakeLists.txt). */
#ifndef TESTS_UNIT_LIBWLB_ALLOCATIONS_H
#define TESTS_UNIT_LIBWLB_ALLOCATIONS_H

/* The allocation after this number of them fails, once; negative, as at the start: none. */
extern long allocations_left;

#endif
