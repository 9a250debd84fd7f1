#include "common/proc_stat.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

const char *wlb_proc_stat_field(const char *path, int field, char line[WLB_PROC_STAT_SIZE])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	ssize_t length = read(fd, line, WLB_PROC_STAT_SIZE - 1);
	close(fd);
	line[length > 0 ? length : 0] = '\0';
	char *name_end = strrchr(line, ')'); /* the name may hold blanks and parentheses */
	char *rest = NULL;
	char *text = name_end != NULL ? strtok_r(name_end + 1, " \n", &rest) : NULL;
	for (int i = WLB_PROC_STATE; i < field && text != NULL; i++)
		text = strtok_r(NULL, " \n", &rest);
	return text;
}
