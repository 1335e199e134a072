"""Tests of the package, the example project and the repository; the folders mirror the package."""
