/* Whether a process is a launcher of ranks, and how many nodes it waits for, by its command. */
#ifndef COORDINATOR_AGENT_LAUNCHER_PROCESS_H
#define COORDINATOR_AGENT_LAUNCHER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* torchrun, also as python -m torch.distributed.run or .launch, ft_launcher, accelerate, deepspeed; *name is static. */
bool wlb_launcher_process(pid_t pid, const char **name);

/* Returns the least number of nodes that it starts with: of --nnodes, --num_machines, --num_nodes, or PET_NNODES. 0:
 * not known. */
int wlb_launcher_process_nodes(pid_t pid);

#endif
