/*
 * Preloaded into slurmd, and so into its slurmstepds: the end of Slurm's PMIx plugin on node NODE never returns, as in
 * the deadlock of libpmix 4.2.2, where the file $WLB_TEST_FINALIZE/hang-NODE exists. It is at work while poll-NODE
 * exists. It takes 2 s, and then leaves the file slow-NODE.done, where slow-NODE exists.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <pmix_server.h>

static const char *path_of(const char *what, const char *end, char path[PATH_MAX])
{
	const char *folder = getenv("WLB_TEST_FINALIZE"), *node = getenv("SLURMD_NODENAME");
	snprintf(path, PATH_MAX, "%s/%s-%s%s", folder, what, node, end);
	return path;
}

static void wait_for_lock(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	for (;;)
		pthread_mutex_lock(&lock);
}

PMIX_EXPORT pmix_status_t PMIx_server_finalize(void)
{
	char path[PATH_MAX];
	pmix_status_t (*finalize)(void) = (pmix_status_t(*)(void))dlsym(RTLD_NEXT, "PMIx_server_finalize");
	if (access(path_of("hang", "", path), F_OK) == 0)
		wait_for_lock();
	while (access(path_of("poll", "", path), F_OK) == 0)
		usleep(50000);
	if (access(path_of("slow", "", path), F_OK) == 0) {
		sleep(2);
		close(open(path_of("slow", ".done", path), O_CREAT | O_WRONLY, 0600));
	}
	return finalize != NULL ? finalize() : PMIX_ERROR;
}
