/* Freed memory is returned to the system. With malloc's default settings the process stays as large as it ever was. */
#ifndef COORDINATOR_WLBD_MAIN_MEMORY_H
#define COORDINATOR_WLBD_MAIN_MEMORY_H

/* Sets how malloc works, before the first allocation of size: blocks from 256 KiB come from the system and go back to
 * it whole, and what threads allocate lies where malloc_trim finds it. */
void wlbd_memory_configure(void);

/* Called every second: returns freed memory once 4 MiB more of it, or of resident memory, are there than the last time
 * left. */
void wlbd_memory_return_freed(void);

#endif
