"""What cutting planes, bundle methods and bounds from tangents share."""
