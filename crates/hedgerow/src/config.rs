//! placeholder
/// x
#[derive(Debug)]
pub struct HedgeConfig;
/// x
#[derive(Debug)]
pub struct ConfigError;
