"""DRAMSys and DRAMsim3 as simulators of the environment."""
