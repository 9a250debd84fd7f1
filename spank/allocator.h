/* The plugin in sbatch and salloc, before they read their options. */
#ifndef SPANK_ALLOCATOR_H
#define SPANK_ALLOCATOR_H

void wlb_allocator_clear_environment(void);

#endif
