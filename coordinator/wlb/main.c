#include "coordinator/wlb/program.h"

int main(int argc, char **argv)
{
	return wlb_program_main(&wlb_command_program, argc, argv);
}
