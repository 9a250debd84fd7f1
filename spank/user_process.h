/* A child of slurmd that becomes a process of the job's user, outside of the job. */
#ifndef SPANK_USER_PROCESS_H
#define SPANK_USER_PROCESS_H

#include <pwd.h>

/* Leaves what it has of slurmd: signals, open files, the folder. The child must be in a session of its own. */
void wlb_user_process_detach(void);
/* Becomes the user completely; -1 if that fails. */
int wlb_user_process_become(const struct passwd *user);

#endif
